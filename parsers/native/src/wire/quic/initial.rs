//! Protection of Initial and Retry packets, whose keys everyone can derive: RFC 9001 sections 5.2 to 5.4 and 5.8, and RFC
//! 9369 section 3.3.

use aes_gcm::aead::AeadInOut;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::BlockCipherEncrypt;
use aes_gcm::{Aes128Gcm, KeyInit};
use hkdf::Hkdf;
use sha2::Sha256;

use super::{ConnectionId, LongPacket, Version};

const TAG: usize = 16;
const IV: usize = 12;
/// Bytes of the ciphertext that mask the header.
const SAMPLE: usize = 16;
/// The sample begins where a packet number of the greatest length ends.
const LONGEST_NUMBER: usize = 4;

impl Version {
    fn salt(self) -> [u8; 20] {
        match self {
            Self::V1 => *b"\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a",
            Self::V2 => *b"\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9",
            Self::Draft29 => {
                *b"\xaf\xbf\xec\x28\x99\x93\xd2\x4c\x9e\x97\x86\xf1\x9c\x61\x11\xe0\x43\x90\xa8\x99"
            }
        }
    }

    /// Labels of key, nonce and header key.
    fn labels(self) -> [&'static [u8]; 3] {
        match self {
            Self::V1 | Self::Draft29 => [b"quic key", b"quic iv", b"quic hp"],
            Self::V2 => [b"quicv2 key", b"quicv2 iv", b"quicv2 hp"],
        }
    }

    /// Key and nonce of the tag of Retry packets.
    fn retry_keys(self) -> ([u8; 16], [u8; IV]) {
        match self {
            Self::V1 => (
                *b"\xbe\x0c\x69\x0b\x9f\x66\x57\x5a\x1d\x76\x6b\x54\xe3\x68\xc8\x4e",
                *b"\x46\x15\x99\xd3\x5d\x63\x2b\xf2\x23\x98\x25\xbb",
            ),
            Self::V2 => (
                *b"\x8f\xb4\xb0\x1b\x56\xac\x48\xe2\x60\xfb\xcb\xce\xad\x7c\xcc\x92",
                *b"\xd8\x69\x69\xbc\x2d\x7c\x6d\x99\x90\xef\xb0\x4a",
            ),
            Self::Draft29 => (
                *b"\xcc\xce\x18\x7e\xd0\x9a\x09\xd0\x57\x28\x15\x5a\x6c\xb9\x6b\xe1",
                *b"\xe5\x49\x30\xf9\x7f\x21\x36\xf0\x53\x0a\x8c\x1c",
            ),
        }
    }
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// Keys of the Initial packets that one end sends.
pub struct InitialKeys {
    packet: Aes128Gcm,
    iv: [u8; IV],
    header: Aes128,
}

/// The contents of an Initial packet.
#[derive(Debug)]
pub struct Opened {
    pub number: u64,
    pub frames: Vec<u8>,
}

/// Expand a secret to `N` bytes (RFC 8446 section 7.1, with an empty context).
fn expand<const N: usize>(secret: &Hkdf<Sha256>, label: &[u8]) -> Option<[u8; N]> {
    let head = [0, N as u8, (b"tls13 ".len() + label.len()) as u8];
    let mut key = [0; N];
    secret.expand_multi_info(&[&head, b"tls13 ", label, &[0]], &mut key).ok()?;
    Some(key)
}

impl InitialKeys {
    /// Keys of `role` in a connection whose client first chose `destination`.
    pub fn new(version: Version, destination: &ConnectionId, role: Role) -> Option<Self> {
        let label: &[u8] = match role {
            Role::Client => b"client in",
            Role::Server => b"server in",
        };
        let initial = Hkdf::<Sha256>::new(Some(&version.salt()), destination.bytes());
        let secret = Hkdf::<Sha256>::from_prk(&expand::<32>(&initial, label)?).ok()?;
        let [key, iv, header] = version.labels();
        Some(Self {
            packet: Aes128Gcm::new(&expand::<16>(&secret, key)?.into()),
            iv: expand(&secret, iv)?,
            header: Aes128::new(&expand::<16>(&secret, header)?.into()),
        })
    }

    /// Remove the protection of a whole packet; None if it is not of these keys.
    pub fn open(&self, packet: &LongPacket<'_>) -> Option<Opened> {
        let at = packet.number_at;
        let sample: [u8; SAMPLE] = packet.bytes.get(at + LONGEST_NUMBER..)?.first_chunk().copied()?;
        let mut mask = sample.into();
        self.header.encrypt_block(&mut mask);
        let first = packet.bytes.first()? ^ mask[0] & 0x0f;
        let number_bytes = usize::from(first & 3) + 1;
        let (head, sealed) = packet.bytes.split_at_checked(at + number_bytes)?;
        let mut head = head.to_vec();
        *head.first_mut()? = first;
        let mut number = 0_u64;
        for (byte, mask) in head.get_mut(at..)?.iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
            number = number << 8 | u64::from(*byte);
        }
        let (sealed, tag) = sealed.split_last_chunk::<TAG>()?;
        let mut nonce = self.iv;
        for (byte, number) in nonce.iter_mut().rev().zip(number.to_le_bytes()) {
            *byte ^= number;
        }
        let mut frames = sealed.to_vec();
        let opened = self.packet.decrypt_inout_detached(
            &nonce.into(),
            &head,
            frames.as_mut_slice().into(),
            &(*tag).into(),
        );
        opened.ok().map(|()| Opened { number, frames })
    }
}

/// Whether a Retry packet has the tag of an answer to an Initial packet to `destination`.
pub fn is_retry_to(packet: &LongPacket<'_>, destination: &ConnectionId) -> bool {
    let Some((bytes, tag)) = packet.bytes.split_last_chunk::<TAG>().filter(|_| packet.is_whole) else {
        return false;
    };
    let id = destination.bytes();
    let pseudo = [&[id.len() as u8], id, bytes].concat();
    let (key, nonce) = packet.version.retry_keys();
    let cipher = Aes128Gcm::new(&key.into());
    let mut nothing = [];
    cipher
        .decrypt_inout_detached(&nonce.into(), &pseudo, nothing.as_mut_slice().into(), &(*tag).into())
        .is_ok()
}
