/** @file Writes to the memory that it is given, so that who gave it can see that it is shared. */

onmessage = ({ data }) => {
  Atomics.store(new Int32Array(data), 0, 42);
  postMessage(0);
};
