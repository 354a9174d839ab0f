import type { Http2ServerResponse } from 'node:http2';
import type { TransformOptions } from 'node:stream';
import { pipeline as pipe } from 'node:stream/promises';
import { createGzip, type ZlibOptions } from 'node:zlib';
import { type ListBody, type ListParts, type PieceSource, pieceBytes, type SharedPart } from '@keelson/core/internal';
import { type Clock, eventLoopTurns } from '@keelson/core/runtime';
import type { Exchange } from './exchange.ts';
import { answerHeaders, sendBytes, sendHead } from './exchange.ts';
import { DeflatedParts, type DeflatedPiece, deflated, gzipBody } from './gzip-pieces.ts';
import { bodySink } from './http2-messages.ts';
import type { HttpBudgets, HttpLimits } from './options.ts';
import { ClientGone } from './request-body.ts';
import { acceptsGzip, sendWhole } from './send.ts';

/**
 * A pool of buffers for pieces of lists. With it a large list allocates a few buffers instead of a full copy of itself.
 */
export class PiecePool implements PieceSource {
  readonly #limit: number;
  readonly #free: Buffer[] = [];
  readonly #lent = new WeakSet<ArrayBufferLike>();

  /** @param limit greatest number of free buffers */
  constructor(limit: number) {
    this.#limit = limit;
  }

  take(): Buffer {
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(pieceBytes);
    this.#lent.add(buffer.buffer);
    return buffer;
  }

  /** Whether the piece is in a buffer of this pool. */
  owns(piece: Buffer): boolean {
    return this.#lent.has(piece.buffer);
  }

  /**
   * To be called when the piece is no longer read. Pieces of other buffers, and pieces already returned, are ignored.
   */
  giveBack(piece: Buffer): void {
    if (!this.#lent.delete(piece.buffer) || this.#free.length >= this.#limit) return;
    this.#free.push(Buffer.from(piece.buffer));
  }
}

/** Bodies up to this size are sent as one buffer. */
const joinBytes = 64 * 1024;
/** Bytes written to the socket in one corked group, for pieces created for this response. */
const groupBytes = 256 * 1024;
/**
 * Bytes written to the socket in one corked group, for shared pieces. They need no memory of their own, and larger
 * groups wait for the socket less often.
 */
const sharedGroupBytes = 1024 * 1024;
/** Number of parts of a list, each of up to four megabytes, that are compressed concurrently. */
const partsAtOnce = 6;
/** Longest uninterrupted work on one list, in milliseconds. */
const sliceMs = 2;
/** Number of items between two checks of the clock. */
const stride = 32;
/** Number of blocks of up to a megabyte between two checks of the clock. */
const blockStride = 4;

/** The high water mark makes every piece wait until the previous one is compressed. */
const gzipOptions: ZlibOptions & TransformOptions = { level: 1, chunkSize: 64 * 1024, writableHighWaterMark: 1 };

/** The memory that the list responses of one server share. */
export class ListMemory {
  /** Buffers for lists whose bytes are created for one response. */
  readonly buffers: PiecePool;
  /** Compressed forms of the parts of lists that several responses share. */
  readonly deflated: DeflatedParts;

  constructor({ listBuffersBytes, compressedListsBytes }: HttpBudgets) {
    this.buffers = new PiecePool(Math.floor(listBuffersBytes / pieceBytes));
    this.deflated = new DeflatedParts(compressedListsBytes);
  }
}

export interface ListSendOptions {
  readonly clock: Clock;
  readonly limits: HttpLimits;
  readonly memory: ListMemory;
}

/**
 * Whether a `drain` event follows. The result of the last write is not valid after `uncork`: when the socket accepts
 * everything, Node 22 emits no `drain` and continues to report that it is needed; later versions emit it in `uncork`.
 */
function needsDrain({ response }: Exchange): boolean {
  // Only responses of HTTP/2 have a stream, those of Node's compatibility layer too.
  const { stream } = response as Partial<Pick<Http2ServerResponse, 'stream'>>;
  if (stream !== undefined) return stream.writableNeedDrain;
  return response.writableNeedDrain && response.socket?.writableNeedDrain !== false;
}

/** Resolves at the next `drain` event; rejects when the client disconnects first. */
function drained(exchange: Exchange): Promise<void> {
  const { response } = exchange;
  return new Promise((resolve, reject) => {
    const onDrain = () => {
      response.off('close', onClose);
      resolve();
    };
    const onClose = () => {
      response.off('drain', onDrain);
      reject(new ClientGone());
    };
    if (response.destroyed) onClose();
    else {
      response.once('drain', onDrain);
      response.once('close', onClose);
    }
  });
}

/** The items in groups of about `groupBytes`. Yields to other requests after every slice of work. */
async function* groups(body: ListBody, clock: Clock): AsyncGenerator<Buffer[]> {
  let group: Buffer[] = [body.head];
  let size = body.head.length;
  let until = clock.monotonic() + sliceMs;
  let count = 0;
  for (const item of body.items) {
    // An empty piece only marks an opportunity to yield.
    if (item.length > 0) group.push(item);
    size += item.length;
    count += 1;
    if (size >= groupBytes) {
      yield group;
      group = [];
      size = 0;
      until = clock.monotonic() + sliceMs;
    } else if (count % stride === 0 && clock.monotonic() >= until) {
      await eventLoopTurns.pass();
      until = clock.monotonic() + sliceMs;
    }
  }
  group.push(body.tail);
  yield group;
}

/** Writes groups with backpressure. The deadline of the request is extended while the client receives data. */
async function stream(exchange: Exchange, source: AsyncIterable<Buffer[]>, options: ListSendOptions): Promise<void> {
  const { response } = exchange;
  const { buffers } = options.memory;
  for await (const group of source) {
    if (response.destroyed) return;
    exchange.deadlineAt = options.clock.monotonic() + options.limits.requestTimeoutMs;
    response.cork();
    for (const piece of group) {
      exchange.sentBytes += piece.length;
      if (buffers.owns(piece)) response.write(piece, returnTo(buffers, piece));
      else response.write(piece);
    }
    response.uncork();
    if (needsDrain(exchange)) await drained(exchange);
    // The kernel copies up to a megabyte per group. A fast client may take all of them without a drain, and many
    // connections may drain in one turn of the event loop.
    await eventLoopTurns.pass();
  }
  response.end();
}

/**
 * Returns a piece to the pool when it has been written. A piece whose write failed is not used again, because the
 * socket may still reference it.
 */
function returnTo(buffers: PiecePool, piece: Buffer): (error?: Error | null) => void {
  return (error) => {
    if (!error) buffers.giveBack(piece);
  };
}

/** One piece at a time; the next one is created when the previous one has been consumed. */
async function* oneByOne(source: AsyncIterable<Buffer[]>, buffers: PiecePool): AsyncGenerator<Buffer> {
  for await (const group of source) {
    for (const piece of group) {
      yield piece;
      buffers.giveBack(piece);
    }
  }
}

/** Compresses pieces created for this response in a zlib thread, with backpressure on both sides. */
async function streamGzip(
  exchange: Exchange,
  source: AsyncIterable<Buffer[]>,
  options: ListSendOptions,
): Promise<void> {
  const gzip = createGzip(gzipOptions);
  gzip.on('data', (piece: Buffer) => {
    exchange.sentBytes += piece.length;
    exchange.deadlineAt = options.clock.monotonic() + options.limits.requestTimeoutMs;
  });
  try {
    await pipe(oneByOne(source, options.memory.buffers), gzip, bodySink(exchange.response));
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE' ? new ClientGone() : error;
  }
}

/**
 * The pieces of a list that exists as bytes, and their total size. Yields to other requests after every slice of work,
 * because the watch cache may copy objects into a block to create a piece.
 */
async function measured(exchange: Exchange, body: ListBody, clock: Clock): Promise<{ pieces: Buffer[]; size: number }> {
  const pieces = [body.head];
  let size = body.head.length + body.tail.length;
  let until = clock.monotonic() + sliceMs;
  for (const piece of body.items) {
    pieces.push(piece);
    size += piece.length;
    if (pieces.length % blockStride !== 0 || clock.monotonic() < until) continue;
    await eventLoopTurns.pass();
    if (exchange.response.destroyed) throw new ClientGone();
    until = clock.monotonic() + sliceMs;
  }
  pieces.push(body.tail);
  return { pieces, size };
}

function* inGroupsOf<P>(count: number, items: Iterable<P>): Generator<P[]> {
  let group: P[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length < count) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

function* joinedItems<P>(...sources: readonly Iterable<P>[]): Generator<P> {
  for (const source of sources) yield* source;
}

/** The body of a list in parts, compressed. Parts that other lists contain too are compressed once for all of them. */
async function* zippedParts(
  { head, tail }: ListBody,
  parts: ListParts,
  { memory }: ListSendOptions,
  exchange: Exchange,
): AsyncGenerator<Buffer[]> {
  const deflate = (part: Buffer | SharedPart) => (Buffer.isBuffer(part) ? deflated(part) : memory.deflated.of(part));
  if (parts.start === undefined) {
    yield* gzipBody(inGroupsOf(partsAtOnce, joinedItems([head], parts.items(), [tail])), deflate);
    return;
  }
  // The length of the items precedes the first one.
  const items: DeflatedPiece[] = [];
  let length = 0;
  for (const group of inGroupsOf(partsAtOnce, parts.items())) {
    for (const item of await Promise.all(group.map(deflate))) {
      items.push(item);
      length += item.length;
    }
    if (exchange.response.destroyed) throw new ClientGone();
  }
  const start = await deflated(Buffer.concat([head, parts.start(length)]));
  const all = joinedItems([start], items, [await deflated(tail)]);
  yield* gzipBody(inGroupsOf(partsAtOnce, all), async (piece) => piece);
}

async function* inGroups(pieces: readonly Buffer[]): AsyncGenerator<Buffer[]> {
  let group: Buffer[] = [];
  let size = 0;
  for (const piece of pieces) {
    group.push(piece);
    size += piece.length;
    if (size >= sharedGroupBytes) {
      yield group;
      group = [];
      size = 0;
    }
  }
  if (group.length > 0) yield group;
}

/**
 * Sends a list: a small list in one write, a large one as a stream of shared buffers with backpressure, compressed when
 * the client accepts it. Never creates a second copy of a large list.
 */
export async function sendList(
  exchange: Exchange,
  contentType: string,
  body: ListBody,
  options: ListSendOptions,
): Promise<void> {
  const { request, response } = exchange;
  const acceptsCompressed = request.method !== 'HEAD' && acceptsGzip(request.headers['accept-encoding']);
  const parts = acceptsCompressed ? body.parts : undefined;
  const zipped = parts && zippedParts(body, parts, options, exchange);
  const known = body.ready ? await measured(exchange, body, options.clock) : undefined;
  let source: AsyncIterable<Buffer[]>;
  let length: number | undefined;
  // A list that is not ready, and has parts, is long.
  let large = true;
  let isZipped = false;
  if (known !== undefined) {
    if (known.size <= joinBytes) {
      sendBytes(exchange, 200, contentType, Buffer.concat(known.pieces, known.size));
      return;
    }
    length = known.size;
    large = known.size > options.limits.gzipBytes;
    isZipped = zipped !== undefined && large;
    source = inGroups(known.pieces);
  } else if (zipped !== undefined) {
    isZipped = true;
    source = zipped;
  } else {
    const all = groups(body, options.clock);
    const first = await all.next();
    const second = first.done ? first : await all.next();
    if (!first.done && second.done) {
      const whole = Buffer.concat(first.value);
      for (const piece of first.value) options.memory.buffers.giveBack(piece);
      return sendWhole(exchange, 200, contentType, whole, options.limits.gzipBytes);
    }
    source = resumed([first, second], all);
  }
  // An object that cannot be encoded fails the list before its head is sent.
  if (zipped !== undefined && isZipped) source = resumed([await zipped.next()], zipped);
  const compressed = large && acceptsCompressed;
  const headers = answerHeaders(exchange, contentType, compressed ? undefined : length);
  if (large) headers.push('Vary', 'Accept-Encoding');
  if (compressed) headers.push('Content-Encoding', 'gzip');
  if (!sendHead(exchange, 200, headers)) return;
  if (request.method === 'HEAD') response.end();
  else if (compressed && !isZipped) await streamGzip(exchange, source, options);
  else await stream(exchange, source, options);
}

/** Groups that have been read already, and the rest. */
async function* resumed(
  begun: readonly IteratorResult<Buffer[], unknown>[],
  rest: AsyncGenerator<Buffer[]>,
): AsyncGenerator<Buffer[]> {
  for (const group of begun) if (!group.done) yield group.value;
  yield* rest;
}
