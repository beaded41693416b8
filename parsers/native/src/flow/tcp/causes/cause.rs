//! The words for what held a sender back, and for the signs of it.

named_enum! {
    /// What a sender waited for, or was held by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Cause {
        /// The set-up of the connection, up to its first data.
        Handshake = "handshake",
        /// Data from its application.
        Application = "application",
        /// The other side's answer.
        Server = "server",
        Receiver = "receiver",
        SendBuffer = "send_buffer",
        SlowStart = "slow_start",
        /// The rate of the path, which the flow takes alone.
        Bottleneck = "bottleneck",
        /// The same, which others take too.
        SharedBottleneck = "shared_bottleneck",
        Policer = "policer",
        /// Losses that no queue explains.
        Loss = "loss",
        /// Marks of explicit congestion notification.
        Mark = "mark",
        /// The repair of losses.
        Recovery = "recovery",
        /// A retransmission timer, and the repair after it.
        Timeout = "timeout",
        /// Nothing passes.
        Outage = "outage",
        Unknown = "unknown",
    }
}

impl Cause {
    /// Whether it holds a sender back by its congestion window, or is the repair of what reduced that.
    pub fn is_of_window(self) -> bool {
        self.is_of_path() || matches!(self, Self::Recovery | Self::Timeout)
    }

    /// Whether a window holds a sender back that has data to send.
    pub fn has_data(self) -> bool {
        self.is_of_window() || self == Self::Receiver
    }

    /// Whether data wait in a queue that is full of these or of others.
    pub fn is_of_queue(self) -> bool {
        matches!(self, Self::Bottleneck | Self::SharedBottleneck)
    }

    /// Whether the path limits the rate by the congestion window.
    pub fn is_of_path(self) -> bool {
        matches!(
            self,
            Self::SlowStart
                | Self::Bottleneck
                | Self::SharedBottleneck
                | Self::Policer
                | Self::Loss
                | Self::Mark
        )
    }
}

named_enum! {
    /// The sign that decided, or why none did.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Sign {
        NoDataYet = "no_data_yet",
        NothingInFlight = "nothing_in_flight",
        /// Data were sent without an acknowledgement after the end of a write.
        Write = "write",
        /// Acknowledgements made room that was not used.
        UnusedRoom = "unused_room",
        /// The flight stayed below an earlier one, though nothing had reduced the window.
        FlightBelowEarlier = "flight_below_earlier",
        Request = "request",
        WindowEdge = "window_edge",
        ClosedWindow = "closed_window",
        /// The flight drops and is refilled in steps, each time when an acknowledgement comes.
        Refills = "refills",
        NoCutYet = "no_cut_yet",
        /// The last reduction came with a queue.
        LossWithQueue = "loss_with_queue",
        QueueGrows = "queue",
        SteadyRate = "steady_rate",
        RateBelowCapacity = "rate_below_capacity",
        /// With a queue, the rate grows with the flight.
        RateOfFlight = "rate_grows_with_flight",
        /// Another flow between the same hosts stood in a queue, too.
        BesideOthers = "beside_others",
        EqualRates = "equal_rates_between_losses",
        LossWithoutQueue = "loss_without_queue",
        EchoedMark = "echoed_mark",
        Retransmission = "retransmission",
        RetransmissionTimer = "retransmission_timer",
        /// Retransmissions by timer that nothing answers.
        NoAnswer = "no_answer",
        AwayFromSender = "away_from_sender",
        /// The capture lacks data that the receiver got.
        MissingData = "missing_data",
        /// The clock of the capture went back.
        ClockStep = "clock_step",
        NoAcknowledgements = "no_acknowledgements",
        UnknownWindow = "unknown_window",
        NoSign = "no_sign",
    }
}
