//! Who a connection comes from, as far as shares are counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, or for IPv6 the network of one subscriber: its lower half is everybody's own choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn new(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                Self(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> u64::BITS << u64::BITS)))
            }
            address => Self(address),
        }
    }

    /// For requests that came over no connection.
    pub(crate) const NOBODY: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap())
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_an_address_of_ipv4_is_one_in_both_spellings() {
        assert_eq!(peer("2001:db8:1:2::3"), peer("2001:db8:1:2:ffff::1"));
        assert_ne!(peer("2001:db8:1:2::3"), peer("2001:db8:1:3::3"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
    }
}
