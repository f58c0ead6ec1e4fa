//! The stack machine that runs a pickle's opcodes.

use std::collections::HashMap;

use bytes::Bytes;

use super::object::{Array, Function, Object, Objects, Problem, Value, shown};

/// No function here takes more arguments, and no array of images has more axes.
const MOST_ITEMS: usize = 8;

pub(super) struct Machine {
    file: Bytes,
    position: usize,
    stack: Vec<Value>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<usize, Value>,
    pub(super) objects: Objects,
    /// Bytes of text that were encoded, the one thing that is copied.
    copied: usize,
}

impl Machine {
    pub(super) fn new(file: Bytes) -> Self {
        let (stack, marks, memo) = (Vec::new(), Vec::new(), HashMap::new());
        Self { file, position: 0, stack, marks, memo, objects: Objects::default(), copied: 0 }
    }

    /// Runs to the end of the program and returns what it leaves.
    pub(super) fn run(&mut self) -> Result<Value, Problem> {
        if self.byte()? != 0x80 {
            return Err("it is not a pickle of protocol 2 to 5".into());
        }
        let protocol = self.byte()?;
        if !(2..=5).contains(&protocol) {
            return Err(format!("it is a pickle of protocol {protocol}, expected 2 to 5"));
        }
        loop {
            match self.byte()? {
                b'.' => return self.pop(),
                opcode => self.step(opcode)?,
            }
            if self.stack.len().max(self.marks.len()).max(self.memo.len()) > Objects::LIMIT {
                return Err(format!("it has more than {} objects", Objects::LIMIT));
            }
        }
    }

    fn step(&mut self, opcode: u8) -> Result<(), Problem> {
        match opcode {
            0x95 => drop(self.take(8)?), // a frame: only its length
            b'N' => self.stack.push(Value::Other),
            b'G' => {
                self.take(8)?;
                self.stack.push(Value::Other);
            }
            0x88 => self.stack.push(Value::Bool(true)),
            0x89 => self.stack.push(Value::Bool(false)),
            b'K' => self.integer(1)?,
            b'M' => self.integer(2)?,
            b'J' => {
                let bytes = self.take(4)?;
                self.stack.push(signed(&bytes));
            }
            0x8a | 0x8b => {
                let length = self.length(if opcode == 0x8a { 1 } else { 4 })?;
                let bytes = self.take(length)?;
                self.stack.push(signed(&bytes));
            }
            b'U' | b'C' => self.string(1, Object::Bytes)?,
            b'T' | b'B' => self.string(4, Object::Bytes)?,
            0x8e | 0x96 => self.string(8, Object::Bytes)?,
            0x8c => self.string(1, Object::Text)?,
            b'X' => self.string(4, Object::Text)?,
            0x8d => self.string(8, Object::Text)?,
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => self.stack.push(self.top()?),
            b']' => self.push(Object::List(Vec::new()))?,
            b'}' => self.push(Object::Dict(Vec::new()))?,
            b')' => self.push(Object::Tuple(Vec::new()))?,
            0x85..=0x87 => {
                let mut items = Vec::new();
                for _ in 0x85..=opcode {
                    items.push(self.pop()?);
                }
                items.reverse();
                self.push(Object::Tuple(items))?;
            }
            b't' => {
                let items = self.pop_to_mark()?;
                self.push(Object::Tuple(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set_items(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(&items)?;
            }
            b'q' => self.memoise(1)?,
            b'r' => self.memoise(4)?,
            0x94 => drop(self.memo.insert(self.memo.len(), self.top()?)),
            b'h' => self.recall(1)?,
            b'j' => self.recall(4)?,
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.stack.push(Value::Function(Function::find(&module, &name)?));
            }
            0x93 => {
                let (name, module) = (self.pop_string()?, self.pop_string()?);
                self.stack.push(Value::Function(Function::find(&module, &name)?));
            }
            b'R' => self.call()?,
            b'b' => self.set_state()?,
            _ => return Err(format!("opcode {opcode:#04x} is not plain data")),
        }
        Ok(())
    }

    /// Calls one of the known functions.
    fn call(&mut self) -> Result<(), Problem> {
        let arguments = self.pop()?;
        let arguments = self.tuple(arguments)?;
        let Value::Function(function) = self.pop()? else {
            return Err("call of something that is no function".into());
        };
        match (function, &arguments[..]) {
            (Function::Reconstruct, [Value::Function(Function::NdArray), ..]) => {
                self.push(Object::Array(None))
            }
            (Function::FromBuffer, &[buffer, item_type, shape, order]) => {
                let is_transposed = *self.string_of(order)? != b"C"[..];
                let array = self.make_array(shape, item_type, is_transposed, buffer)?;
                self.push(Object::Array(Some(array)))
            }
            (Function::ItemType, &[name, ..]) => {
                let name = self.string_of(name)?;
                self.push(Object::ItemType(name))
            }
            (Function::Encode, &[text, ..]) => {
                let bytes = self.encode(text)?;
                self.push(Object::Bytes(bytes))
            }
            (Function::ByteArray, &[bytes]) => {
                let bytes = self.string_of(bytes)?;
                self.push(Object::Bytes(bytes))
            }
            _ => Err(format!("call of {function:?} with unexpected arguments")),
        }
    }

    /// Fills in an array. An item type's state says nothing about bytes.
    fn set_state(&mut self) -> Result<(), Problem> {
        let state = self.pop()?;
        let target = self.top()?;
        match self.objects.get(target) {
            Some(Object::ItemType(_)) => return Ok(()),
            Some(Object::Array(None)) => {}
            _ => return Err("state of something that has none".into()),
        }
        let [_version, shape, item_type, transposed, values] = self.tuple(state)?[..] else {
            return Err("array with an unexpected state".into());
        };
        let array = self.make_array(shape, item_type, transposed != Value::Bool(false), values)?;
        if let Some(Object::Array(unset)) = self.objects.get_mut(target) {
            *unset = Some(array);
        }
        Ok(())
    }

    fn make_array(
        &self,
        shape: Value,
        item_type: Value,
        is_transposed: bool,
        values: Value,
    ) -> Result<Box<Array>, Problem> {
        let shape = self.tuple(shape)?.into_iter().map(|size| match size {
            Value::Int(size) => usize::try_from(size).map_err(|_| format!("array axis of {size}")),
            _ => Err("array shape without numbers".into()),
        });
        let shape = shape.collect::<Result<Vec<usize>, Problem>>()?;
        match self.objects.get(item_type) {
            Some(Object::ItemType(name)) if **name == b"u1"[..] => {}
            Some(Object::ItemType(name)) => return Err(format!("array of {}, expected u1", shown(name))),
            _ => return Err("array without a type".into()),
        }
        if is_transposed {
            return Err("array in column-major order".into());
        }
        let values = self.string_of(values)?;
        let expected = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        if expected != Some(values.len()) {
            return Err(format!("array of shape {shape:?} with {} values", values.len()));
        }
        Ok(Box::new(Array { shape, values }))
    }

    /// Python 3 writes bytes for Python 2 as text whose characters are the bytes.
    fn encode(&mut self, text: Value) -> Result<Bytes, Problem> {
        let text = self.string_of(text)?;
        self.copied += text.len();
        if self.copied > self.file.len() {
            return Err("it encodes more bytes than the file has".into());
        }
        let text = str::from_utf8(&text).map_err(|_| "text that is not UTF-8".to_string())?;
        let bytes = text.chars().map(u8::try_from).collect::<Result<Vec<u8>, _>>();
        bytes.map(Bytes::from).map_err(|_| "encoded text with characters beyond latin1".into())
    }

    fn append(&mut self, items: Vec<Value>) -> Result<(), Problem> {
        let target = self.top()?;
        let Some(Object::List(list)) = self.objects.get_mut(target) else {
            return Err("append to something that is no list".into());
        };
        list.extend(items);
        Ok(())
    }

    fn set_items(&mut self, items: &[Value]) -> Result<(), Problem> {
        let target = self.top()?;
        let Some(Object::Dict(dict)) = self.objects.get_mut(target) else {
            return Err("items of something that is no dictionary".into());
        };
        let (pairs, []) = items.as_chunks::<2>() else {
            return Err("dictionary items that are not pairs".into());
        };
        dict.extend(pairs.iter().map(|&[key, value]| (key, value)));
        Ok(())
    }

    fn memoise(&mut self, width: usize) -> Result<(), Problem> {
        let key = self.length(width)?;
        self.memo.insert(key, self.top()?);
        Ok(())
    }

    fn recall(&mut self, width: usize) -> Result<(), Problem> {
        let key = self.length(width)?;
        let value = self.memo.get(&key).ok_or_else(|| format!("nothing in the memo at {key}"))?;
        self.stack.push(*value);
        Ok(())
    }

    fn push(&mut self, object: Object) -> Result<(), Problem> {
        self.stack.push(self.objects.add(object)?);
        Ok(())
    }

    fn pop(&mut self) -> Result<Value, Problem> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    /// The last value above the last mark.
    fn top(&self) -> Result<Value, Problem> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack.get(floor..).and_then(|values| values.last()).copied().ok_or("the stack is empty".into())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>, Problem> {
        let mark = self.marks.pop().ok_or("no mark on the stack")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn pop_string(&mut self) -> Result<Bytes, Problem> {
        let value = self.pop()?;
        self.string_of(value)
    }

    /// A copy of a short tuple.
    fn tuple(&self, value: Value) -> Result<Vec<Value>, Problem> {
        match self.objects.get(value) {
            Some(Object::Tuple(items)) if items.len() <= MOST_ITEMS => Ok(items.clone()),
            _ => Err("call, state or shape without a short tuple".into()),
        }
    }

    fn string_of(&self, value: Value) -> Result<Bytes, Problem> {
        self.objects.string(value).cloned().ok_or("expected text or bytes".into())
    }

    fn string(&mut self, width: usize, make: fn(Bytes) -> Object) -> Result<(), Problem> {
        let length = self.length(width)?;
        let bytes = self.take(length)?;
        self.push(make(bytes))
    }

    fn integer(&mut self, width: usize) -> Result<(), Problem> {
        let value = self.length(width)?;
        self.stack.push(i64::try_from(value).map_or(Value::Other, Value::Int));
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Problem> {
        let byte = self.file.get(self.position).copied().ok_or("it ends too early")?;
        self.position += 1;
        Ok(byte)
    }

    fn take(&mut self, length: usize) -> Result<Bytes, Problem> {
        let end = self.position.checked_add(length).filter(|&end| end <= self.file.len());
        let end = end.ok_or("it ends too early")?;
        let bytes = self.file.slice(self.position..end);
        self.position = end;
        Ok(bytes)
    }

    /// An unsigned little-endian number.
    fn length(&mut self, width: usize) -> Result<usize, Problem> {
        let bytes = self.take(width)?;
        let value = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        usize::try_from(value).map_err(|_| "it ends too early".into())
    }

    fn line(&mut self) -> Result<Bytes, Problem> {
        let rest = self.file.get(self.position..).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == b'\n').ok_or("it ends too early")?;
        let line = self.take(length)?;
        self.position += 1;
        Ok(line)
    }
}

/// A little-endian number in two's complement; those beyond 64 bits are of no use here.
fn signed(bytes: &[u8]) -> Value {
    if bytes.len() > 8 {
        return Value::Other;
    }
    let is_negative = bytes.last().is_some_and(|&last| last >= 0x80);
    let mut wide = [if is_negative { 0xff } else { 0 }; 8];
    for (wide, &byte) in wide.iter_mut().zip(bytes) {
        *wide = byte;
    }
    Value::Int(i64::from_le_bytes(wide))
}
