/** One entry of a container's log file. */
export interface LogLine {
  /** RFC 3339 with nanoseconds. */
  readonly time: string;
  readonly stream: 'stdout' | 'stderr';
  /** The text does not end a line: the next entry of the same stream continues it. */
  readonly partial: boolean;
  /** Without the line end. */
  readonly text: Buffer;
}

/**
 * `TIME STREAM F|P TEXT` and a line end, the format in which every runtime writes logs. The text may be any bytes but
 * line ends.
 */
export function formatLogLine(time: string, stream: 'stdout' | 'stderr', partial: boolean, text: Buffer): Buffer {
  const head = `${time} ${stream} ${partial ? 'P' : 'F'} `;
  const line = Buffer.allocUnsafe(head.length + text.length + 1);
  line.write(head, 'latin1');
  text.copy(line, head.length);
  line[line.length - 1] = 0x0a;
  return line;
}

/** The part of an entry before its text. */
export interface LogLineHead extends Omit<LogLine, 'text'> {
  /** Where the text begins. */
  readonly length: number;
}

/** No head of an entry is longer. */
export const maxLogHeadBytes = 128;

/**
 * The head of the entry that begins at an offset. `end` is the offset of the line end, or undefined where the bytes do
 * not reach it; a head that is not complete then is reported as undefined, like bytes that are no entry. Tags may have
 * more fields, separated by colons.
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

/** The entry of one line (without its line end), or undefined when it is none. */
export function parseLogLine(line: Buffer): LogLine | undefined {
  const head = parseLogHead(line, 0, line.length);
  if (head === undefined) return undefined;
  const { length, ...fields } = head;
  return { ...fields, text: line.subarray(length) };
}
