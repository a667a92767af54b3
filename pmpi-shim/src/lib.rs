//! libgammachi.so
