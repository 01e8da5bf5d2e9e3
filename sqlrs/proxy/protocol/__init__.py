"""The PostgreSQL protocol: bytes, frames, messages and the handshake, without their use."""
