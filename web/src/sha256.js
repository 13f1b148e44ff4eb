/** @file sha256 of bytes, also where the context is not secure and the browser hides crypto.subtle. */

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {SubtleCrypto | undefined} subtle undefined on a page served over plain http from another machine
 * @returns {Promise<string>} 64 hexadecimal digits
 */
export async function sha256(bytes, subtle) {
  const digest = subtle === undefined ? digestInScript(bytes) : new Uint8Array(await subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// FIPS 180-4: the first 32 bits of the fractional parts of the square and cube roots of the first primes.
const PRIMES = firstPrimes(64);
const INITIAL = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
const ROUNDS = Uint32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));

/**
 * @param {Uint8Array} bytes
 * @returns {Uint8Array} 32 bytes
 */
export function digestInScript(bytes) {
  const state = Uint32Array.from(INITIAL);
  const words = new Uint32Array(64);
  const whole = bytes.length - (bytes.length % 64);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = 0; offset < whole; offset += 64) {
    mixBlock(state, words, view, offset);
  }
  const rest = bytes.length - whole;
  const tail = new Uint8Array(rest < 56 ? 64 : 128);
  tail.set(bytes.subarray(whole));
  tail[rest] = 0x80;
  const tailView = new DataView(tail.buffer);
  tailView.setBigUint64(tail.length - 8, BigInt(bytes.length) * 8n);
  for (let offset = 0; offset < tail.length; offset += 64) {
    mixBlock(state, words, tailView, offset);
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, index) => digest.setUint32(index * 4, word));
  return new Uint8Array(digest.buffer);
}

/**
 * @param {Uint32Array} state
 * @param {Uint32Array} words scratch for 64 words
 * @param {DataView} view
 * @param {number} offset
 */
function mixBlock(state, words, view, offset) {
  for (let i = 0; i < 16; i += 1) {
    words[i] = view.getUint32(offset + i * 4);
  }
  for (let i = 16; i < 64; i += 1) {
    const early = at(words, i - 15);
    const late = at(words, i - 2);
    const s0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const s1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    words[i] = at(words, i - 16) + s0 + at(words, i - 7) + s1;
  }
  let a = at(state, 0);
  let b = at(state, 1);
  let c = at(state, 2);
  let d = at(state, 3);
  let e = at(state, 4);
  let f = at(state, 5);
  let g = at(state, 6);
  let h = at(state, 7);
  for (let i = 0; i < 64; i += 1) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + at(ROUNDS, i) + at(words, i)) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  // Elements of a Uint32Array wrap around by themselves.
  [a, b, c, d, e, f, g, h].forEach((word, index) => {
    state[index] = at(state, index) + word;
  });
}

/**
 * @param {Uint32Array} words
 * @param {number} index inside the array
 * @returns {number}
 */
function at(words, index) {
  return /** @type {number} */ (words[index]);
}

/**
 * @param {number} word
 * @param {number} bits
 * @returns {number}
 */
function rotate(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

/**
 * @param {number} root
 * @returns {number} the first 32 bits of the fractional part
 */
function fraction(root) {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}

/**
 * @param {number} count
 * @returns {number[]}
 */
function firstPrimes(count) {
  /** @type {number[]} */
  const primes = [];
  for (let candidate = 2; primes.length < count; candidate += 1) {
    if (primes.every((prime) => candidate % prime !== 0)) {
      primes.push(candidate);
    }
  }
  return primes;
}
