//! Which values are the same, asked as often as one likes.

use std::collections::HashMap;

use super::{Doc, Kind, Value};

/// Gives the values of documents numbers: two have the same number exactly if they are the same
/// value, written the same way and with their members in the same order, as canonical ones are.
/// Nothing is hashed without being compared, so nobody can forge a likeness.
#[derive(Debug, Default)]
pub struct Sameness<'d> {
    scalars: HashMap<&'d [u8], u32>,
    /// Small containers: each, and what it is with one more child at its end.
    small: HashMap<(u32, u32), u32>,
    /// Large ones, by all their children; arrays, then objects.
    large: [HashMap<Vec<u32>, u32>; 2],
    next: u32,
}

/// The most children a small container has.
const SMALL: usize = 4;

/// The numbers of one document's values.
#[derive(Debug)]
pub struct Numbers(Vec<u32>);

impl Numbers {
    /// The number of a value of that document.
    #[must_use]
    pub fn of(&self, value: Value<'_>) -> u32 {
        self.0[value.index() as usize]
    }

    /// All of them, in the order of the values.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

impl<'d> Sameness<'d> {
    /// Numbers a document's values, in time linear in their count.
    pub fn number(&mut self, doc: &'d Doc<'d>) -> Numbers {
        let mut numbers = vec![0; doc.nodes.len()];
        let mut children = Vec::new();
        // What lies in a value comes after it, so backwards every child is numbered before its parent.
        for value in doc.root().within().rev() {
            let number = match value.kind() {
                kind @ (Kind::Object | Kind::Array) => {
                    children.clear();
                    children.extend(value.children(kind).map(|child| numbers[child.index() as usize]));
                    self.container(kind == Kind::Object, &children)
                }
                Kind::Null | Kind::Bool | Kind::Number | Kind::NonFinite | Kind::String => self.scalar(value.raw()),
            };
            numbers[value.index() as usize] = number;
        }
        Numbers(numbers)
    }

    fn scalar(&mut self, raw: &'d [u8]) -> u32 {
        let number = *self.scalars.entry(raw).or_insert(self.next);
        self.next += u32::from(number == self.next);
        number
    }

    fn container(&mut self, is_object: bool, children: &[u32]) -> u32 {
        if children.len() <= SMALL {
            let empty = self.scalar(if is_object { b"{}" } else { b"[]" });
            return children.iter().fold(empty, |so_far, child| {
                let number = *self.small.entry((so_far, *child)).or_insert(self.next);
                self.next += u32::from(number == self.next);
                number
            });
        }
        let large = &mut self.large[usize::from(is_object)];
        if let Some(number) = large.get(children) {
            return *number;
        }
        large.insert(children.to_vec(), self.next);
        self.next += 1;
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Doc, Sameness};

    #[test]
    fn the_same_values_have_the_same_number_in_all_documents() {
        let a = Doc::parse(br#"{"a":[1,"x"],"b":[1,"x"],"c":{"d":null}}"#).unwrap();
        let b = Doc::parse(br#"[{"d":null},["x",1],[1,"x"],{},[],"1",[1,2,3,4,5],[1,2,3,4,5],{"a":1,"b":2,"c":3},["a",1,"b",2,"c",3]]"#).unwrap();
        let mut sameness = Sameness::default();
        let (of_a, of_b) = (sameness.number(&a), sameness.number(&b));
        let a = |pointer| of_a.of(a.root().at(pointer).unwrap());
        let b = |pointer| of_b.of(b.root().at(pointer).unwrap());
        assert_eq!(a("/a"), a("/b"));
        assert_eq!(a("/a"), b("/2"));
        assert_eq!(a("/c"), b("/0"));
        assert_ne!(a("/a"), b("/1"), "another order");
        assert_ne!(b("/3"), b("/4"), "an object is no array");
        assert_eq!(b("/6"), b("/7"));
        assert_ne!(b("/8"), b("/9"), "an object is no array, however large");
        assert_ne!(a("/a/0"), b("/5"), "a number is no string");
    }
}
