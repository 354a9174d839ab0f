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

const space = 0x20;

/** `TIME STREAM F|P TEXT` and a line end, the format in which every runtime writes logs. The text may be any bytes but line ends. */
export function formatLogLine(time: string, stream: 'stdout' | 'stderr', partial: boolean, text: Buffer): Buffer {
  const head = `${time} ${stream} ${partial ? 'P' : 'F'} `;
  const line = Buffer.allocUnsafe(head.length + text.length + 1);
  line.write(head, 'latin1');
  text.copy(line, head.length);
  line[line.length - 1] = 0x0a;
  return line;
}

/** The entry of one line (without its line end), or undefined when it is none. Tags may have more fields, separated by colons. */
export function parseLogLine(line: Buffer): LogLine | undefined {
  const first = line.indexOf(space);
  const second = first < 0 ? -1 : line.indexOf(space, first + 1);
  if (second < 0) return undefined;
  const third = line.indexOf(space, second + 1);
  const time = line.toString('latin1', 0, first);
  const stream = line.toString('latin1', first + 1, second);
  const tag = line.toString('latin1', second + 1, third < 0 ? line.length : third).split(':', 1)[0];
  if ((stream !== 'stdout' && stream !== 'stderr') || (tag !== 'F' && tag !== 'P') || Number.isNaN(Date.parse(time)))
    return undefined;
  return { time, stream, partial: tag === 'P', text: third < 0 ? Buffer.alloc(0) : line.subarray(third + 1) };
}
