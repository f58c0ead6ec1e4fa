//! One file that needs nothing else: head, style and the frame around sections.

use super::text::Text;

/// A page that grows from top to bottom.
pub struct Page {
    html: String,
}

impl Page {
    /// Nothing may be loaded and no script may run: whatever slips into the page stays text.
    const POLICY: &str =
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

    /// A page with its head; the title is text.
    pub fn new(title: &str) -> Self {
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n",
            Self::POLICY,
            Text(title),
            include_str!("style.css")
        );
        Self { html }
    }

    /// Adds finished HTML.
    pub fn push(&mut self, html: impl AsRef<str>) {
        self.html.push_str(html.as_ref());
    }

    /// The whole file.
    pub fn finish(mut self) -> String {
        self.html.push_str("</body>\n</html>\n");
        self.html
    }
}
