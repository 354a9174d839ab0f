import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Clock } from '../runtime/clock.ts';
import type { ListPosition } from './resource-storage.ts';

/** Encodes the position of a chunked list as a signed token, which clients cannot change or use for another list. */
export interface ContinueTokens {
  /** `binding` names everything the pages of one list have in common: kind, namespace, selectors. Never the limit. */
  encode(position: ListPosition, binding: string): string;
  /**
   * Fails with `InvalidToken` when the token was not issued by a server with this secret and configuration, or
   * (`mismatch` set) for another binding; with `ExpiredToken` when it is too old, whose `key` is the last key seen, so
   * that the caller can offer a token that continues at the latest state.
   */
  decode(text: string, binding: string): ListPosition;
}

export interface ContinueTokenOptions {
  /** At least 16 bytes; tokens stay valid as long as it stays the same. */
  readonly secret: Uint8Array;
  /** Names the server's configuration; tokens issued under another one are invalid. */
  readonly fingerprint: string;
  readonly clock: Clock;
  /** Life of a token; five minutes unless given, the minimum time for which history is kept. */
  readonly lifeMs?: number;
}

const macBytes = 32;
const bindingBytes = 12;
const defaultLifeMs = 300_000;
/**
 * Maximum length of a token. A token contains a key of at most 1 KiB, which stays far below this limit after JSON
 * escaping and base64.
 */
const maxTokenLength = 16_384;

interface Payload {
  /** Revision, 0 = latest. */
  readonly r: number;
  /** Last key seen. */
  readonly a: string;
  /** Issued at, epoch milliseconds. */
  readonly t: number;
}

/** Tokens are `base64url(mac | bindingHash | JSON payload)`, the mac (HMAC-SHA256) covering all that follows it. */
export function createContinueTokens(options: ContinueTokenOptions): ContinueTokens {
  if (options.secret.byteLength < 16) throw new TypeError('the secret of continue tokens needs at least 16 bytes');
  // The fingerprint is a part of the key, so that the signature of a token of another configuration is invalid.
  const key = createHmac('sha256', options.secret)
    .update('keelson continue token\0')
    .update(options.fingerprint)
    .digest();
  const lifeMs = options.lifeMs ?? defaultLifeMs;
  const sign = (content: Uint8Array) => createHmac('sha256', key).update(content).digest();

  return {
    encode(position, binding) {
      const payload: Payload = {
        r: position.revision === 'latest' ? 0 : position.revision,
        a: position.after,
        t: options.clock.now(),
      };
      const content = Buffer.concat([hashOf(binding), Buffer.from(JSON.stringify(payload))]);
      return Buffer.concat([sign(content), content]).toString('base64url');
    },

    decode(text, binding) {
      const content = genuineContent(text, sign);
      const payload = JSON.parse(content.toString('utf8', bindingBytes)) as Payload;
      if (!content.subarray(0, bindingBytes).equals(hashOf(binding))) {
        throw new StorageError(
          StorageErrorCode.InvalidToken,
          'the continue token belongs to a list with other parameters',
          {
            mismatch: true,
          },
        );
      }
      if (options.clock.now() - payload.t > lifeMs) {
        throw new StorageError(StorageErrorCode.ExpiredToken, 'the continue token is too old', {
          key: payload.a,
          revision: payload.r,
        });
      }
      return { revision: payload.r === 0 ? 'latest' : payload.r, after: payload.a };
    },
  };
}

function hashOf(binding: string): Buffer {
  return createHash('sha256').update(binding).digest().subarray(0, bindingBytes);
}

/** The content of the token when its signature is valid. */
function genuineContent(text: string, sign: (content: Uint8Array) => Buffer): Buffer {
  if (text.length <= maxTokenLength && /^[A-Za-z0-9_-]+$/.test(text)) {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length > macBytes + bindingBytes) {
      const content = bytes.subarray(macBytes);
      if (timingSafeEqual(sign(content), bytes.subarray(0, macBytes))) return content;
    }
  }
  throw new StorageError(StorageErrorCode.InvalidToken, 'the continue token was not issued by this server');
}
