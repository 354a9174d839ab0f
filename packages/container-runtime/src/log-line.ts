/** One entry of a container's log file. */
export interface LogLine {
  /** Time of the entry in RFC 3339 with nanoseconds. */
  readonly time: string;
  readonly stream: 'stdout' | 'stderr';
  /** True when the line of output is longer: the next entry of the same stream continues it. */
  readonly partial: boolean;
  /** Content of the entry without the line end. */
  readonly text: Buffer;
}

/**
 * Formats a log entry as `TIME STREAM F|P TEXT` and a line end, as every runtime writes it. The text may consist of any
 * bytes except line ends.
 */
export function formatLogLine(time: string, stream: 'stdout' | 'stderr', partial: boolean, text: Buffer): Buffer {
  const head = `${time} ${stream} ${partial ? 'P' : 'F'} `;
  const line = Buffer.allocUnsafe(head.length + text.length + 1);
  line.write(head, 'latin1');
  text.copy(line, head.length);
  line[line.length - 1] = 0x0a;
  return line;
}

/** The fields of a log entry that precede its text. */
export interface LogLineHead extends Omit<LogLine, 'text'> {
  /** Number of bytes before the text. */
  readonly length: number;
}

/** Maximum length of the fields that precede the text of a log entry. */
export const maxLogHeadBytes = 128;

/**
 * Parses the fields before the text of the log entry at the offset `begin`. `end` is the offset of the line end;
 * undefined when `bytes` does not contain it. The result is undefined for incomplete fields and for bytes that are not
 * a log entry. Further tags after `F` or `P`, separated by colons, are ignored.
 */
export function parseLogHead(bytes: Buffer, begin: number, end: number | undefined): LogLineHead | undefined {
  const limit = Math.min(end ?? bytes.length, begin + maxLogHeadBytes);
  const head = bytes.toString('latin1', begin, limit);
  const first = head.indexOf(' ');
  const second = first < 0 ? -1 : head.indexOf(' ', first + 1);
  if (second < 0) return undefined;
  const third = head.indexOf(' ', second + 1);
  if (third < 0 && limit !== end) return undefined;
  const time = head.slice(0, first);
  const stream = head.slice(first + 1, second);
  const [tag] = head.slice(second + 1, third < 0 ? undefined : third).split(':', 1);
  if ((stream !== 'stdout' && stream !== 'stderr') || (tag !== 'F' && tag !== 'P') || Number.isNaN(Date.parse(time)))
    return undefined;
  return { time, stream, partial: tag === 'P', length: third < 0 ? head.length : third + 1 };
}

/** Parses a line, without its line end, as log entry; undefined when it is not one. */
export function parseLogLine(line: Buffer): LogLine | undefined {
  const head = parseLogHead(line, 0, line.length);
  if (head === undefined) return undefined;
  const { length, ...fields } = head;
  return { ...fields, text: line.subarray(length) };
}
