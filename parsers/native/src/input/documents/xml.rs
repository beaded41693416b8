//! XML as a sequence of tags, in bounded memory. Text, comments, entities of the document and document
//! types are passed over, so that none of them can expand.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use crate::error::{Hint, ProblemKind, ReadError};
use crate::input::bytes::Input;

/// The longest tag or text that is read.
const MAX_PIECE: usize = 1 << 20;
/// The deepest nesting that is read.
const MAX_DEPTH: usize = 64;

/// The start or end of an element. Elements without content have both.
#[derive(Debug)]
pub enum Tag<'a> {
    /// An element at this depth, from 1.
    Open(usize, &'a BytesStart<'a>),
    /// The element at this depth ends.
    Close(usize),
}

/// Pass all tags of `input` to `work`, up to the first error.
pub fn read(input: Input, mut work: impl FnMut(Tag<'_>)) -> Result<(), ReadError> {
    let mut reader = Reader::from_reader(Bytes { input, error: None, left: MAX_PIECE });
    reader.config_mut().expand_empty_elements = true;
    let mut piece = Vec::new();
    let mut depth = 0_usize;
    loop {
        piece.clear();
        reader.get_mut().left = MAX_PIECE;
        match reader.read_event_into(&mut piece) {
            Ok(Event::Start(tag)) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    let message = format!("elements are nested deeper than {MAX_DEPTH}");
                    return Err(reader.get_mut().corrupt(message));
                }
                work(Tag::Open(depth, &tag));
            }
            Ok(Event::End(_)) => {
                work(Tag::Close(depth));
                depth = depth.saturating_sub(1);
            }
            Ok(Event::Eof) if depth > 0 => return Err(reader.get_mut().cut()),
            Ok(Event::Eof) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(reader.get_mut().explain(&error)),
        }
    }
}

/// The attributes of an element. Characters by number and XML's own five entities are replaced; a value
/// with another entity stays as it is.
pub fn attributes<'a>(tag: &'a BytesStart<'a>) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
    let mut all = tag.attributes();
    all.with_checks(false);
    all.flatten().map(|attribute| {
        let value = match unescape(&attribute.value) {
            Ok(Cow::Owned(value)) => Cow::Owned(value),
            _ => attribute.value,
        };
        (attribute.key.0, value)
    })
}

/// The input's window for the XML reader, which joins a piece that spans windows.
struct Bytes {
    input: Input,
    error: Option<ReadError>,
    /// Bytes left for the current piece.
    left: usize,
}

impl BufRead for Bytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        match self.input.peek(1) {
            Ok(window) => Ok(window.get(..self.left).unwrap_or(window)),
            Err(error) => {
                self.error = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn consume(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n);
        self.input.consume(n);
    }
}

impl Read for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buffer)?;
        self.consume(n);
        Ok(n)
    }
}

impl Bytes {
    fn explain(&mut self, error: &quick_xml::Error) -> ReadError {
        if let Some(error) = self.error.take() {
            return error;
        }
        if self.left == 0 {
            return self.corrupt(format!("a tag or text is longer than {MAX_PIECE} bytes"));
        }
        match self.input.peek(1) {
            Ok([]) => self.cut(),
            _ => self.corrupt(format!("this is not well-formed XML: {error}")),
        }
    }

    fn corrupt(&self, message: String) -> ReadError {
        ReadError::at(ProblemKind::Corrupt, self.input.offset(), message)
    }

    fn cut(&self) -> ReadError {
        let message = "the document ends inside an element";
        ReadError::at(ProblemKind::Truncated, self.input.offset(), message).hint(Hint::CutShort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::bytes::Progress;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn tags_of(bytes: &[u8]) -> (Vec<String>, Result<(), ReadError>) {
        let reader = Box::new(io::Cursor::new(bytes.to_vec()));
        let input = Input::from_reader(reader, None, &Arc::new(Progress::default())).unwrap();
        let mut tags = Vec::new();
        let outcome = read(input, |tag| {
            tags.push(match tag {
                Tag::Open(depth, tag) => format!("{depth}<{}", tag.name().0),
                Tag::Close(depth) => format!("{depth}>"),
            });
        });
        (tags, outcome)
    }

    #[test]
    fn test_tags_in_order_and_nothing_else() {
        let text = b"<?xml version=\"1.0\"?><!-- c --><a x='1'>text &amp; more<b/></a>\n";
        assert_eq!(tags_of(text), (["1<a", "2<b", "2>", "1>"].map(String::from).to_vec(), Ok(())));
    }

    #[test]
    fn test_a_cut_document_keeps_what_came_before() {
        for text in ["<a><b/>", "<a><b/><c", "<a><b/></a", "<a><b/><c x='1"] {
            let (tags, outcome) = tags_of(text.as_bytes());
            assert_eq!(tags[..3], ["1<a", "2<b", "2>"].map(String::from), "{text}");
            let error = outcome.unwrap_err();
            assert_eq!((error.kind, error.byte), (ProblemKind::Truncated, Some(text.len() as u64)), "{text}");
        }
    }

    #[test]
    fn test_bombs_are_harmless() {
        let entities =
            b"<!DOCTYPE a [<!ENTITY x \"yyyyyyyyyy\"><!ENTITY z \"&x;&x;&x;\">]><a b=\"&z;\">&z;</a>";
        assert_eq!(tags_of(entities).0.len(), 2);
        assert_eq!(tags_of(&b"<a>".repeat(100_000)).1.unwrap_err().kind, ProblemKind::Corrupt);
        let long = [b"<a>".to_vec(), vec![b'x'; 3 * MAX_PIECE]].concat();
        assert_eq!(tags_of(&long).1.unwrap_err().kind, ProblemKind::Corrupt);
        let long_tag = [b"<a ".to_vec(), vec![b'x'; 3 * MAX_PIECE]].concat();
        assert_eq!(tags_of(&long_tag).1.unwrap_err().kind, ProblemKind::Corrupt);
    }

    proptest! {
        #[test]
        fn test_any_bytes_end_somehow(bytes: Vec<u8>) {
            let _ = tags_of(&bytes);
        }

        #[test]
        fn test_anything_like_xml_ends_somehow(text in "[<>/a='\"&;! \\[\\]?-]{0,80}") {
            let _ = tags_of(text.as_bytes());
        }
    }
}
