use super::*;
use crate::input::text::{TextFormat, detect};

const PROBES: &str = "# tracer: nop
          iperf3-2211  [001] ..s3.  1700000012.500000: tcp_probe: family=AF_INET src=10.0.0.1:5201 dest=10.0.0.2:40000 mark=0x0 data_len=1448 snd_nxt=0x10 snd_una=0xfffffff0 snd_cwnd=10 ssthresh=2147483647 snd_wnd=65160 srtt=20471 rcv_wnd=64256 sock_cookie=1
          <idle>-0     [000] ..s3.  1700000012.600000: tcp_probe: family=AF_INET6 src=[fe80::1]:5201 dest=[fe80::2]:40000 mark=0x0 data_len=0 snd_nxt=0x1 snd_una=0x1 snd_cwnd=7 ssthresh=7 snd_wnd=65160 srtt=500 rcv_wnd=64256 sock_cookie=2
";

const RETRANSMISSIONS: &str = "Tracing retransmits ... Hit Ctrl-C to end
TIME     PID    IP LADDR:LPORT          T> RADDR:RPORT          STATE
01:55:05 0      4  10.153.223.157:22    R> 69.53.245.40:34619   ESTABLISHED
01:55:05 0      4  10.153.223.157:22    R> 69.53.245.40:34619   ESTABLISHED
01:55:17 0      4  10.153.223.157:22    L> 69.53.245.40:34619   ESTABLISHED
";

fn read(text: &str) -> KernelEvents {
    assert_eq!(detect(text.as_bytes()), Some(TextFormat::KernelEvents));
    let mut events = KernelEvents::default();
    for line in text.lines() {
        assert_eq!(events.read(1, line.as_bytes(), &mut Packet::default()), Outcome::Other, "{line}");
    }
    events
}

#[test]
fn test_probes_have_the_variables_of_their_socket() {
    let mut events = read(PROBES);
    assert!(events.caveats().is_empty());
    let samples = events.take_samples();
    let of = |port: u16, name: &str| {
        let found = samples.iter().find(|sample| sample.name == name && sample.endpoints.src_port == port);
        found.map(|sample| sample.value)
    };
    let values = |name: &str| -> Vec<f64> {
        samples.iter().filter(|sample| sample.name == name).map(|sample| sample.value).collect()
    };
    assert_eq!(values("cwnd"), [10.0, 7.0]);
    assert_eq!(values("ssthresh"), [7.0]);
    assert_eq!((of(5201, "srtt"), of(5201, "bytes_in_flight")), (Some(20.471), Some(32.0)));
    assert_eq!(samples[0].time_ns, 1_700_000_012_500_000_000);
}

#[test]
fn test_retransmissions_add_up() {
    let mut events = read(RETRANSMISSIONS);
    assert_eq!(events.caveats(), ["its times have no date: they are since midnight"]);
    let samples = events.take_samples();
    let found: Vec<_> = samples.iter().map(|sample| (sample.name, sample.value)).collect();
    assert_eq!(found, [("retransmits", 1.0), ("retransmits", 2.0), ("tail_loss_probes", 1.0)]);
    assert_eq!((samples[0].endpoints.src_port, samples[0].endpoints.dst_port), (22, 34_619));
    assert_eq!(samples[2].time_ns, (115 * 60 + 17) * 1_000_000_000);
}

#[test]
fn test_other_lines_are_none() {
    for line in [
        "tcp_probe: family=AF_INET",
        "1.5: tcp_probe: src=10.0.0.1 dest=10.0.0.2:1",
        "01:55:05 0 5 a b c",
        "",
    ] {
        assert!(!recognises(line.as_bytes()), "{line}");
    }
}
