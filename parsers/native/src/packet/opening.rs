//! What a client sends first, which names the server that it wants.

use serde::{Deserialize, Serialize};

named_enum! {
    /// What names the server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NamedBy {
        /// The server name of a ClientHello (RFC 6066 section 3).
        Sni = "sni",
        /// The same with Encrypted Client Hello (RFC 9849): a public name, or a client that only pretends to hide one
        /// (section 6.2).
        SniWithEch = "sni_with_ech",
        /// The target of a request or its Host (RFC 9112 section 3.3).
        Http = "http",
    }
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientHello {
    /// RFC 6066 section 3.
    pub server_name: Option<String>,
    /// Offered protocols (RFC 7301), in order.
    pub protocols: Option<String>,
    /// Whether it has the extension of Encrypted Client Hello.
    pub has_ech: bool,
}

impl ClientHello {
    /// What gave the server's name, if there is one.
    pub fn named_by(&self) -> Option<NamedBy> {
        self.server_name.as_ref().map(|_| if self.has_ech { NamedBy::SniWithEch } else { NamedBy::Sni })
    }
}

/// What the first bytes of a TCP connection's client are, if they are TLS or HTTP/1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Opening {
    Hello(ClientHello),
    /// A request, with the host that it names.
    Request(Option<String>),
    /// The beginning of either; the rest was not captured so far.
    Part,
    /// One of them that breaks its format, or is longer than what is kept.
    Unread,
}

impl Opening {
    pub fn server_name(&self) -> Option<&str> {
        match self {
            Self::Hello(hello) => hello.server_name.as_deref(),
            Self::Request(host) => host.as_deref(),
            Self::Part | Self::Unread => None,
        }
    }

    pub fn protocols(&self) -> Option<&str> {
        match self {
            Self::Hello(hello) => hello.protocols.as_deref(),
            _ => None,
        }
    }

    /// What gave the server's name, if there is one.
    pub fn named_by(&self) -> Option<NamedBy> {
        match self {
            Self::Hello(hello) => hello.named_by(),
            Self::Request(host) => host.as_ref().map(|_| NamedBy::Http),
            Self::Part | Self::Unread => None,
        }
    }

    /// Why there is no name though the client began as others that name one.
    pub fn note(&self) -> Option<&'static str> {
        match self {
            Self::Hello(_) | Self::Request(_) => None,
            Self::Part => Some("no server name: the client's first bytes are not all in the capture"),
            Self::Unread => {
                Some("no server name: the client's first message is damaged or longer than 16 kB")
            }
        }
    }
}
