//! Who am I: devices, PCI, NUMA, container, cloud, storage.
