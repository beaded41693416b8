//! A decoded packet and its parts, on which all other modules build.

pub mod address;
pub mod batch;
pub mod captured;
pub mod dccp;
pub mod encapsulation;
pub mod event;
pub mod extras;
pub mod flow_totals;
pub mod frame;
pub mod ip_fields;
pub mod key;
pub mod link_type;
pub mod logged_variables;
pub mod opening;
pub mod plain;
pub mod record;
pub mod sender_stamp;
pub mod seq;
pub mod tunnel;
