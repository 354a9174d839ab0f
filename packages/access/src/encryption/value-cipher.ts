import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomFillSync,
} from 'node:crypto';
import { encryptedPrefix } from '@keelson/core/internal';

const algorithm = 'aes-256-gcm';
const saltBytes = 16;
const nonceBytes = 12;
const tagBytes = 16;
const options = { authTagLength: tagBytes };

/** Writes with one data key. With random nonces a repetition among so many has a probability below 2^-56. */
export const writesPerDataKey = 2 ** 20;
/** Maximum number of cached data keys of other processes and of earlier starts. */
const maxDataKeys = 4096;
/** Nonces are created in groups, because each call of the random generator has a fixed cost. */
const nonceGroup = 256;

interface DataKey {
  /** The beginning of the values: the prefix, the name of the key, the salt. */
  readonly head: Buffer;
  readonly key: KeyObject;
  writes: number;
}

/**
 * Encrypts values with AES-256-GCM. The configured key is used only to derive data keys by HKDF-SHA-256 with a random
 * salt: one for each process and {@link writesPerDataKey} writes (docs/adr/0064). The storage key of a value is part of
 * the authenticated data, so an encrypted value cannot be moved to another storage key.
 *
 * Format: {@link encryptedPrefix}, name of the key, colon, salt, nonce, encrypted value, tag.
 */
export class ValueCipher {
  readonly name: string;
  readonly #secret: KeyObject;
  readonly #head: Buffer;
  readonly #derived = new Map<string, KeyObject>();
  readonly #nonces = Buffer.alloc(nonceGroup * nonceBytes);
  #noncesUsed = nonceGroup;
  #current: DataKey | undefined;

  /** @param secret 32 bytes */
  constructor(name: string, secret: Buffer) {
    this.name = name;
    this.#secret = createSecretKey(secret);
    this.#head = Buffer.from(`${encryptedPrefix}${name}:`, 'latin1');
  }

  /** True when both have the same key. */
  equals(other: ValueCipher): boolean {
    return this.name === other.name && this.#secret.equals(other.#secret);
  }

  seal(key: string, value: Uint8Array): Buffer {
    const dataKey = this.#dataKey();
    dataKey.writes += 1;
    const nonce = this.#nonce();
    const cipher = createCipheriv(algorithm, dataKey.key, nonce, options);
    cipher.setAAD(bytesOf(key));
    const body = cipher.update(value);
    cipher.final();
    const bodyAt = dataKey.head.length + nonceBytes;
    const sealed = Buffer.allocUnsafe(bodyAt + body.length + tagBytes);
    sealed.set(dataKey.head, 0);
    sealed.set(nonce, dataKey.head.length);
    sealed.set(body, bodyAt);
    sealed.set(cipher.getAuthTag(), bodyAt + body.length);
    return sealed;
  }

  /** Decrypts a value. Undefined when it was not encrypted with this key for this storage key, or was changed. */
  open(key: string, sealed: Uint8Array): Buffer | undefined {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const salt = this.#head.length;
    const nonce = salt + saltBytes;
    const body = nonce + nonceBytes;
    const tag = bytes.length - tagBytes;
    if (tag < body) return undefined;
    const dataKey = this.#derive(bytes.subarray(salt, nonce));
    const decipher = createDecipheriv(algorithm, dataKey, bytes.subarray(nonce, body), options);
    decipher.setAAD(bytesOf(key));
    decipher.setAuthTag(bytes.subarray(tag));
    const value = decipher.update(bytes.subarray(body, tag));
    try {
      decipher.final();
      return value;
    } catch {
      return undefined;
    }
  }

  #dataKey(): DataKey {
    if (this.#current === undefined || this.#current.writes >= writesPerDataKey) {
      const salt = randomFillSync(Buffer.alloc(saltBytes));
      this.#current = { head: Buffer.concat([this.#head, salt]), key: this.#derive(salt), writes: 0 };
    }
    return this.#current;
  }

  #nonce(): Buffer {
    if (this.#noncesUsed === nonceGroup) {
      randomFillSync(this.#nonces);
      this.#noncesUsed = 0;
    }
    const at = this.#noncesUsed * nonceBytes;
    this.#noncesUsed += 1;
    return this.#nonces.subarray(at, at + nonceBytes);
  }

  #derive(salt: Buffer): KeyObject {
    const id = salt.toString('latin1');
    let key = this.#derived.get(id);
    if (key === undefined) {
      key = createSecretKey(Buffer.from(hkdfSync('sha256', this.#secret, salt, encryptedPrefix, 32)));
      if (this.#derived.size >= maxDataKeys) this.#derived.delete(this.#derived.keys().next().value ?? '');
      this.#derived.set(id, key);
    }
    return key;
  }
}

const keyBytes = Buffer.allocUnsafeSlow(4096);

/** A storage key in UTF-8; only valid until the next call. */
function bytesOf(key: string): Buffer {
  return key.length * 3 > keyBytes.length ? Buffer.from(key) : keyBytes.subarray(0, keyBytes.write(key));
}

/** Greatest difference between the lengths of an encrypted value and the value. */
export const maxOverheadBytes = 128;
