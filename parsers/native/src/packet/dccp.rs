//! A decoded DCCP header (RFC 4340), before it belongs to a connection.

named_enum! {
    /// Packet types in the order of their numbers (RFC 4340 section 5.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum DccpType {
        Request = "Request",
        Response = "Response",
        Data = "Data",
        Ack = "Ack",
        DataAck = "DataAck",
        /// The server asks the client to close.
        CloseReq = "CloseReq",
        Close = "Close",
        /// Ends a connection, regularly or not.
        Reset = "Reset",
        /// Sequence numbers are out of step.
        Sync = "Sync",
        SyncAck = "SyncAck",
    }
}

impl DccpType {
    /// The type with that number; those from 10 on are reserved.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its number on the wire.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether there is an acknowledgement number (RFC 4340 section 5.3).
    pub fn has_ack(self) -> bool {
        !matches!(self, Self::Request | Self::Data)
    }

    /// Whether application data follow the header (RFC 4340 section 5.1).
    pub fn has_data(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Data | Self::DataAck)
    }

    /// Bytes in front of the options.
    pub fn fixed_bytes(self, is_short: bool) -> usize {
        let generic = if is_short { 12 } else { 16 };
        let ack = match (self.has_ack(), is_short) {
            (false, _) => 0,
            (true, true) => 4,
            (true, false) => 8,
        };
        let extra = if matches!(self, Self::Request | Self::Response | Self::Reset) { 4 } else { 0 };
        generic + ack + extra
    }
}

/// The header without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DccpHeader {
    pub kind: DccpType,
    /// CCID 3: the sender's window counter, which advances by one each quarter of an RTT (RFC 4342
    /// section 8.1).
    pub ccval: u8,
    pub coverage: u8,
    /// Whether numbers are the low 24 bits only.
    pub is_short: bool,
    pub seq: u64,
    /// Acknowledgement number: the highest sequence number received.
    pub ack: Option<u64>,
    /// Service code; only in Request and Response.
    pub service_code: Option<u32>,
    pub reset_code: Option<u8>,
}
