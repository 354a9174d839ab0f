import { printableText } from '../errors/printable-text.ts';
import type { LogFields } from './logger.ts';

/** Bounds of one line: characters of a text and of all texts together, members of an object, depth. */
const maxText = 2_000;
const maxTotal = 8_000;
const maxMembers = 40;
const maxDepth = 6;

const redacted = '[redacted]';

/** Names of members that hold credentials, or raw bytes of a connection; without `-` and `_`, in lower case. */
const secretNames =
  /^(?:(?:proxy)?authorization|(?:set)?cookie|.*(?:token|password|passwd|secret)|apikey|privatekey|raw(?:packet|headers)|headers)$/;

/** Credentials within a text, and what replaces them. */
const secretTexts: readonly (readonly [RegExp, string])[] = [
  [/\b((?:proxy-)?authorization|cookie)(["']?\s*[:=])[^\r\n]*/gi, `$1$2 ${redacted}`],
  [/\b(bearer|basic|negotiate) +(?!tokens?\b)[\w.~+/=-]{6,}/gi, `$1 ${redacted}`],
  [/\beyJ[\w-]{12,}(?:\.[\w-]*)*/g, redacted],
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s:/@]{0,100}):[^\s/@]{1,500}@/gi, `$1:${redacted}@`],
  [/([?&](?:[a-z_]{0,20}token|password|client_secret)=)[^&\s"']+/gi, `$1${redacted}`],
  [/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|$)/g, redacted],
];

class Sanitizer {
  readonly #describe: (error: Error) => unknown;
  #left = maxTotal;

  constructor(describe: (error: Error) => unknown) {
    this.#describe = describe;
  }

  text(text: string): string {
    // Credentials are removed from more text than is shown, so that truncation leaves no part of one.
    let safe = text.length > 4 * maxText ? text.slice(0, 4 * maxText) : text;
    for (const [pattern, replacement] of secretTexts) safe = safe.replace(pattern, replacement);
    safe = printableText(safe);
    const room = Math.min(maxText, this.#left);
    const shown = safe.length > room ? `${safe.slice(0, room)}... [${text.length} characters]` : safe;
    this.#left = Math.max(0, this.#left - shown.length);
    return shown;
  }

  value(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case 'string':
        return this.text(value);
      case 'bigint':
        return String(value);
      case 'object':
        return value === null ? null : this.#object(value, depth);
      case 'function':
      case 'symbol':
        return undefined;
      default:
        return value;
    }
  }

  members(object: object, depth: number): Record<string, unknown> {
    const safe: Record<string, unknown> = Object.create(null);
    let count = 0;
    for (const [name, member] of Object.entries(object)) {
      count += 1;
      if (count > maxMembers) break;
      const secret = secretNames.test(name.toLowerCase().replaceAll(/[-_]/g, ''));
      safe[this.text(name)] = secret ? redacted : this.value(member, depth + 1);
    }
    return safe;
  }

  #object(value: object, depth: number): unknown {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
    if (depth >= maxDepth) return '[...]';
    if (value instanceof Error) return this.value(this.#describe(value), depth + 1);
    if (Array.isArray(value)) return value.slice(0, maxMembers).map((member) => this.value(member, depth + 1));
    return this.members(value, depth);
  }
}

/**
 * Errors as they are shown by default. Other members may hold anything, such as the packet that could not be parsed.
 */
function errorMembers(error: Error): object {
  const { name, message, code, stack, cause } = error as NodeJS.ErrnoException;
  return {
    type: name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(stack === undefined ? {} : { stack }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/**
 * The fields of a log line without credentials, raw bytes and control characters, and within bounds: a client decides
 * much of what a server reports.
 *
 * @param describe what is shown of an error; default: its name, message, code, stack and cause
 */
export function safeLogFields(fields: LogFields, describe: (error: Error) => unknown = errorMembers): LogFields {
  return new Sanitizer(describe).members(fields, 0);
}
