import { type Duplex, PassThrough } from 'node:stream';
import { constants, createDeflate } from 'node:zlib';
import { headerDictionary } from '../spdy/dictionary.ts';
import { controlFrame, dataHeader, FrameReader, FrameType, numbersFrame } from '../spdy/frames.ts';
import { plainHeaderBlock } from '../spdy/header-blocks.ts';

/** One stream of a client. */
export interface ClientStream {
  readonly id: number;
  readonly incoming: PassThrough;
  /** Resolves when the server has accepted the stream. */
  readonly answered: Promise<void>;
  /** Resolves with the reason when the server resets the stream. */
  readonly reset: Promise<number>;
  send(content: string | Buffer, last?: boolean): void;
  resetIt(): void;
}

/** The client side of a SPDY connection, which compresses headers with the preset dictionary. */
export class SpdyClient {
  readonly socket: Duplex;
  readonly protocol: string | undefined;
  /** Ids of answered pings. */
  readonly pongs: number[] = [];
  goneAway: number | undefined;
  readonly closed: Promise<void>;
  readonly #deflate = createDeflate({ dictionary: headerDictionary });
  readonly #streams = new Map<number, ClientStream & { answer(): void; wasReset(reason: number): void }>();
  #nextId = 1;

  constructor(socket: Duplex, head: Buffer, protocol: string | undefined) {
    this.socket = socket;
    this.protocol = protocol;
    const frames = new FrameReader(1 << 20);
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    void this.closed.then(() => {
      for (const { incoming } of this.#streams.values()) incoming.end();
    });
    socket.on('data', (chunk: Buffer) => {
      for (const frame of frames.read(chunk)) {
        if (frame.kind === 'data') {
          const incoming = this.#streams.get(frame.streamId)?.incoming;
          if (incoming?.write(frame.content) === false) {
            socket.pause();
            incoming.once('drain', () => socket.resume());
          }
          if (frame.last) incoming?.end();
          continue;
        }
        const number = frame.content.readUInt32BE(0);
        if (frame.type === FrameType.synReply) this.#streams.get(number)?.answer();
        else if (frame.type === FrameType.rstStream) this.#streams.get(number)?.wasReset(frame.content.readUInt32BE(4));
        else if (frame.type === FrameType.ping) this.pongs.push(number);
        else if (frame.type === FrameType.goAway) this.goneAway = frame.content.readUInt32BE(4);
      }
    });
    if (head.length > 0) socket.unshift(head);
  }

  /** Compresses the next block of headers of the connection. */
  async block(headers: Readonly<Record<string, string>>): Promise<Buffer> {
    const chunks: Buffer[] = [];
    const take = (chunk: Buffer) => chunks.push(chunk);
    this.#deflate.on('data', take);
    this.#deflate.write(plainHeaderBlock(headers));
    await new Promise<void>((resolve) => this.#deflate.flush(constants.Z_SYNC_FLUSH, resolve));
    this.#deflate.off('data', take);
    return Buffer.concat(chunks);
  }

  /** Opens a stream. Calls must not overlap, because all header blocks form one compressed stream. */
  async open(headers: Readonly<Record<string, string>>, last = false): Promise<ClientStream> {
    const id = this.#nextId;
    this.#nextId += 2;
    let answer = () => {};
    let wasReset: (reason: number) => void = () => {};
    const stream = {
      id,
      incoming: new PassThrough(),
      answered: new Promise<void>((resolve) => {
        answer = resolve;
      }),
      reset: new Promise<number>((resolve) => {
        wasReset = resolve;
      }),
      answer: () => answer(),
      wasReset: (reason: number) => wasReset(reason),
      send: (content: string | Buffer, isLast = false) => {
        const bytes = Buffer.from(content);
        this.socket.write(Buffer.concat([dataHeader(id, bytes.length, isLast), bytes]));
      },
      resetIt: () => void this.socket.write(numbersFrame(FrameType.rstStream, id, 5)),
    };
    this.#streams.set(id, stream);
    const content = Buffer.alloc(10);
    content.writeUInt32BE(id);
    this.socket.write(controlFrame(FrameType.synStream, Buffer.concat([content, await this.block(headers)]), last));
    return stream;
  }

  ping(id: number): void {
    this.socket.write(numbersFrame(FrameType.ping, id));
  }
}
