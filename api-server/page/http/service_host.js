// Where the service is.

/** Whether it is on this machine: then it is reached without a network, and this page is all of its load. */
export const isLocal = /^(localhost|127\.|\[::1\])/.test(location.hostname);
