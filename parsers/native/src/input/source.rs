//! What an input is: a capture, a text trace or a document, by its content or by name.

use crate::error::ReadError;
use crate::input::bytes::Input;
use crate::input::capture::{Capture, Interface, first_bytes};
use crate::input::documents::DocumentFormat;
use crate::input::documents::json::RECORD_SEPARATOR;
use crate::input::text;
use crate::input::text::{TextFormat, TextTrace};

/// Put in front of a text by some editors.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// A format that the user may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Any format of captures, by the file's first bytes.
    Capture,
    /// A text of lines.
    Text(TextFormat),
    Document(DocumentFormat),
}

impl InputFormat {
    /// All formats with their names.
    pub fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let texts = TextFormat::ALL.into_iter().map(|format| (format.name(), Self::Text(format)));
        let documents = DocumentFormat::ALL.into_iter().map(|format| (format.name(), Self::Document(format)));
        ["pcap", "pcapng", "snoop", "erf"]
            .map(|name| (name, Self::Capture))
            .into_iter()
            .chain(texts)
            .chain(documents)
    }

    /// The format with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|(known, _)| *known == name).map(|(_, format)| format)
    }
}

/// An input whose format is known.
pub enum Source {
    Capture(Capture),
    Text(Box<TextTrace>),
    /// A document, not read yet; None once it was.
    Document(DocumentFormat, Option<Input>),
}

impl Source {
    /// Recognise the format of `input`, unless `forced` names it.
    pub fn open(mut input: Input, forced: Option<InputFormat>) -> Result<Self, ReadError> {
        match forced {
            Some(InputFormat::Capture) => return Capture::open(input).map(Self::Capture),
            Some(InputFormat::Text(format)) => return Ok(Self::Text(Box::new(TextTrace::of(format, input)))),
            Some(InputFormat::Document(format)) => return Ok(Self::Document(format, Some(input))),
            None => {}
        }
        let start = first_bytes(&mut input)?;
        if !looks_like_text(start) {
            return Capture::open(input).map(Self::Capture);
        }
        if let Some(format) = DocumentFormat::ALL.into_iter().find(|format| format.recognises(start)) {
            return Ok(Self::Document(format, Some(input)));
        }
        match TextTrace::open(input)? {
            Ok(trace) => Ok(Self::Text(Box::new(trace))),
            Err(_) => Err(text::not_recognised()),
        }
    }

    pub fn format(&self) -> &'static str {
        match self {
            Self::Capture(capture) => capture.format(),
            Self::Text(trace) => trace.format(),
            Self::Document(format, _) => format.name(),
        }
    }

    /// The interfaces or nodes known so far.
    pub fn interfaces(&self) -> Vec<Interface> {
        match self {
            Self::Capture(capture) => capture.interfaces().to_vec(),
            Self::Text(trace) => trace.interfaces(),
            Self::Document(..) => Vec::new(),
        }
    }

    /// Name of an interface or node, if the source has it.
    pub fn place(&self, interface: u32) -> Option<&str> {
        match self {
            Self::Capture(capture) => capture.interfaces().get(interface as usize)?.name.as_deref(),
            Self::Text(trace) => trace.place(interface),
            Self::Document(..) => None,
        }
    }
}

/// Whether the first bytes could be a text: captures start with bytes that are not.
fn looks_like_text(start: &[u8]) -> bool {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let start = start.strip_prefix(&[RECORD_SEPARATOR]).unwrap_or(start);
    let first = start.get(..4).unwrap_or(start);
    let is_archive = first == [b'P', b'K', 3, 4];
    !first.is_empty() && first.iter().all(is_text) && !is_archive && !crate::input::capture::is_magic(start)
}
