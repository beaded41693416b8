//! Ports by their names in `/etc/services` of common systems: tcpdump prints these without `-n`.

const SERVICES: [(&str, u16); 84] = [
    ("auth", 113),
    ("bgp", 179),
    ("bootpc", 68),
    ("bootps", 67),
    ("chargen", 19),
    ("commplex-link", 5001),
    ("commplex-main", 5000),
    ("daytime", 13),
    ("discard", 9),
    ("domain", 53),
    ("domain-s", 853),
    ("echo", 7),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("ftps", 990),
    ("ftps-data", 989),
    ("gopher", 70),
    ("http", 80),
    ("http-alt", 8080),
    ("https", 443),
    ("imap", 143),
    ("imap2", 143),
    ("imaps", 993),
    ("ipp", 631),
    ("ipsec-nat-t", 4500),
    ("irc", 194),
    ("ircd", 6667),
    ("isakmp", 500),
    ("kerberos", 88),
    ("ldap", 389),
    ("ldaps", 636),
    ("login", 513),
    ("mdns", 5353),
    ("microsoft-ds", 445),
    ("ms-sql-s", 1433),
    ("ms-wbt-server", 3389),
    ("mysql", 3306),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ssn", 139),
    ("nfs", 2049),
    ("nntp", 119),
    ("nntps", 563),
    ("ntp", 123),
    ("openvpn", 1194),
    ("pop3", 110),
    ("pop3s", 995),
    ("postgresql", 5432),
    ("printer", 515),
    ("radius", 1812),
    ("radius-acct", 1813),
    ("route", 520),
    ("router", 520),
    ("rsync", 873),
    ("rtsp", 554),
    ("shell", 514),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("smtp", 25),
    ("smtps", 465),
    ("snmp", 161),
    ("snmp-trap", 162),
    ("snmptrap", 162),
    ("socks", 1080),
    ("ssdp", 1900),
    ("ssh", 22),
    ("submission", 587),
    ("submissions", 465),
    ("sunrpc", 111),
    ("svn", 3690),
    ("syslog", 514),
    ("targus-getdata1", 5201),
    ("telnet", 23),
    ("telnets", 992),
    ("tftp", 69),
    ("time", 37),
    ("webcache", 8080),
    ("whois", 43),
    ("www", 80),
    ("x11", 6000),
    ("xdmcp", 177),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
];

/// The port of a service, if its name is common.
pub fn port(name: &[u8]) -> Option<u16> {
    let at = SERVICES.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
    SERVICES.get(at).map(|(_, port)| *port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_every_name_is_found() {
        assert!(SERVICES.is_sorted_by(|a, b| a.0 < b.0));
        for (name, number) in SERVICES {
            assert_eq!(port(name.as_bytes()), Some(number), "{name}");
        }
        assert_eq!(port(b"no-such-service"), None);
    }
}
