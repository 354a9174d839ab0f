import { formatLogLine, parseLogLine } from '@keelson/container-runtime';

const lineEnd = 0x0a;
const openBrace = 0x7b;

/** An entry of Docker's `json-file`. */
interface JsonEntry {
  readonly log?: unknown;
  readonly stream?: unknown;
  readonly time?: unknown;
}

export interface Converted {
  /** Bytes of the input that are complete lines; the caller passes the remaining bytes again with more input. */
  readonly consumed: number;
  readonly output: Buffer;
}

/**
 * Converts the log of an engine to CRI log entries. Podman's `k8s-file` already has that form; Docker's `json-file` has
 * one JSON object per line. The same input always produces the same output, so that copying is repeatable. Lines in
 * other forms are dropped.
 */
export function convertLines(input: Buffer): Converted {
  const consumed = input.lastIndexOf(lineEnd) + 1;
  if (consumed > 0 && input[0] !== openBrace) return { consumed, output: entriesOnly(input.subarray(0, consumed)) };
  const parts: Buffer[] = [];
  for (let begin = 0; begin < consumed; ) {
    const end = input.indexOf(lineEnd, begin);
    const entry = fromJson(input.toString('utf8', begin, end));
    if (entry !== undefined) parts.push(entry);
    begin = end + 1;
  }
  return { consumed, output: Buffer.concat(parts) };
}

/** Drops invalid lines; returns the input itself when there are none. */
function entriesOnly(lines: Buffer): Buffer {
  const parts: Buffer[] = [];
  let kept = 0;
  for (let begin = 0; begin < lines.length; ) {
    const end = lines.indexOf(lineEnd, begin);
    if (parseLogLine(lines.subarray(begin, end)) === undefined) {
      parts.push(lines.subarray(kept, begin));
      kept = end + 1;
    }
    begin = end + 1;
  }
  return kept === 0 ? lines : Buffer.concat([...parts, lines.subarray(kept)]);
}

function fromJson(line: string): Buffer | undefined {
  let entry: JsonEntry;
  try {
    entry = JSON.parse(line) as JsonEntry;
  } catch {
    return undefined;
  }
  const { log, stream, time } = entry;
  if (typeof log !== 'string' || typeof time !== 'string' || (stream !== 'stdout' && stream !== 'stderr'))
    return undefined;
  const partial = !log.endsWith('\n');
  return formatLogLine(time, stream, partial, Buffer.from(partial ? log : log.slice(0, -1)));
}
