//! A model server on loopback that plays scripts, so that the real agents run offline.
