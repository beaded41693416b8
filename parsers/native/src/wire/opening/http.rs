//! The host that the first request of HTTP/1 names (RFC 9112 section 3).

use super::{Reading, printable};

/// Methods of RFC 9110 section 9.3 and RFC 5789, and those with which WebDAV's clients begin (RFC 4918, RFC 3253, RFC
/// 5323, RFC 4791).
const METHODS: [&[u8]; 19] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"PROPFIND",
    b"PROPPATCH", b"MKCOL", b"COPY", b"MOVE", b"LOCK", b"UNLOCK", b"REPORT", b"SEARCH", b"MKCALENDAR",
];

/// The host of the request that begins `stream`; None if it names none.
pub fn first_request(stream: &[u8]) -> Reading<Option<String>> {
    let Some(method) = METHODS.into_iter().find(|method| follows(stream, method)) else {
        return Reading::OtherProtocol;
    };
    if stream.len() <= method.len() {
        return Reading::Part { is_certain: false };
    }
    let Some((line, headers)) = first_line(stream) else {
        let is_text = !stream.iter().any(|byte| byte.is_ascii_control() && *byte != b'\r');
        return if is_text { Reading::Part { is_certain: true } } else { Reading::OtherProtocol };
    };
    let mut words = line.split(|byte| *byte == b' ');
    let (_, target, version, rest) = (words.next(), words.next(), words.next(), words.next());
    let (Some(target), Some([b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9', ..]), None) =
        (target, version, rest)
    else {
        return Reading::OtherProtocol;
    };
    match (method, authority(target)) {
        (b"CONNECT", _) if !target.contains(&b'/') => Reading::Whole(host(target)),
        // RFC 9112 section 3.2.2: it counts, and not the Host.
        (_, Some(authority)) => Reading::Whole(host(authority)),
        (_, None) => host_field(headers),
    }
}

/// Whether `stream` may begin with a method and a space.
fn follows(stream: &[u8], method: &[u8]) -> bool {
    let mut expected = method.iter().chain(b" ");
    stream.iter().all(|byte| expected.next().is_none_or(|expected| byte == expected))
}

/// A line without its end, and what follows it; None if its end is missing. A line feed alone ends it, too (RFC 9112
/// section 2.2).
fn first_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

/// The authority of a target in absolute form (RFC 3986 section 3.2), without user information.
fn authority(target: &[u8]) -> Option<&[u8]> {
    let scheme = target.iter().position(|byte| *byte == b':')?;
    let is_http = [&b"http"[..], b"https"].iter().any(|known| target[..scheme].eq_ignore_ascii_case(known));
    let after = target[scheme + 1..].strip_prefix(b"//").filter(|_| is_http)?;
    let authority = after.split(|byte| b"/?#".contains(byte)).next()?;
    authority.rsplit(|byte| *byte == b'@').next()
}

/// The value of the Host among header fields.
fn host_field(mut fields: &[u8]) -> Reading<Option<String>> {
    while let Some((line, rest)) = first_line(fields) {
        if line.is_empty() {
            return Reading::Whole(None);
        }
        if let Some((name, value)) = line.split_at_checked(4)
            && name.eq_ignore_ascii_case(b"host")
            && let Some(value) = value.strip_prefix(b":")
        {
            return Reading::Whole(host(value.trim_ascii()));
        }
        fields = rest;
    }
    Reading::Part { is_certain: true }
}

/// The host of `authority` without brackets and port.
fn host(authority: &[u8]) -> Option<String> {
    let without_port = || match authority.iter().position(|byte| *byte == b':') {
        Some(colon) if authority[colon + 1..].iter().all(u8::is_ascii_digit) => &authority[..colon],
        _ => authority,
    };
    let literal = authority.strip_prefix(b"[").and_then(|inside| inside.split(|byte| *byte == b']').next());
    Some(printable(literal.unwrap_or_else(without_port))).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(request: &str) -> Option<String> {
        match first_request(request.as_bytes()) {
            Reading::Whole(host) => host,
            other => panic!("{request:?}: {other:?}"),
        }
    }

    #[test]
    fn test_the_host_is_that_of_the_target_or_the_field() {
        // The examples of RFC 9112 sections 3.2.1 to 3.2.3.
        assert_eq!(
            named("GET /where?q=now HTTP/1.1\r\nHost: www.example.org\r\n").unwrap(),
            "www.example.org"
        );
        assert_eq!(
            named("GET http://www.example.org/pub/WWW/TheProject.html HTTP/1.1\r\n").unwrap(),
            "www.example.org"
        );
        assert_eq!(named("CONNECT www.example.com:80 HTTP/1.1\r\n").unwrap(), "www.example.com");
        for (request, host) in [
            ("GET http://a:b@one.example:8080?x HTTP/1.1\r\nHost: other\r\n", "one.example"),
            ("PUT /a HTTP/1.0\nAccept: */*\nhOST:\t[2001:db8::1]:443 \n", "2001:db8::1"),
            // Against RFC 3986 section 3.2.2: no part of an address is a port.
            ("GET / HTTP/1.1\r\nHost: 2001:db8::1\r\n", "2001:db8::1"),
            ("POST / HTTP/1.1\r\nHosts: no\r\nX-Host: no\r\nHost: 192.0.2.1\r\n", "192.0.2.1"),
            // As a weather station sends.
            ("GET / HTTP/1.0.8\r\nHost: server\r\n", "server"),
            ("GET / HTTP/1.1\r\nHost: a<b>\u{1b}[1m\r\n", "a<b>?[1m"),
        ] {
            assert_eq!(named(request).unwrap(), host);
        }
        assert_eq!(named("CONNECT / HTTP/1.1\r\nHost: server\r\n").unwrap(), "server");
        for request in
            ["GET / HTTP/1.0\r\n\r\nHost: body\r\n", "GET / HTTP/1.1\r\nHost:\r\n", "GET http:/// HTTP/1.1\n"]
        {
            assert_eq!(named(request), None);
        }
    }

    #[test]
    fn test_only_requests_of_this_version_are_requests() {
        for other in [
            "",
            "\r\n",
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\n",
            "get / HTTP/1.1\r\n",
            "GETS / HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n",
            "OPTIONS rtsp://host/ RTSP/1.0\r\n",
            "GET /\r\n",
            "GET / / HTTP/1.1\r\n",
            "GET \0",
        ] {
            let is_other = first_request(other.as_bytes()) == Reading::OtherProtocol;
            assert_eq!(is_other, !other.is_empty(), "{other:?}");
        }
        assert_eq!(first_request(b"GE"), Reading::Part { is_certain: false });
        for part in ["GET /a", "GET / HTTP/1.1\r\nHost: exam", "CONNECT one.exam"] {
            assert_eq!(first_request(part.as_bytes()), Reading::Part { is_certain: true });
        }
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            first_request(&bytes);
            first_request(&[&b"GET http://"[..], &bytes, b" HTTP/1.1\r\nHost"].concat());
        }
    }
}
