import { RuntimeError } from '@keelson/container-runtime';
import type { CriCall, CriService } from '../api/calls.ts';
import type { Message } from '../wire/message.ts';

/** What the service does when one call of CRI comes in. */
export interface Answer {
  readonly service: CriService;
  readonly name: string;
  /** Of bytes to bytes, as they are on the wire. @throws a `RuntimeError` */
  reply(request: Buffer, signal: AbortSignal): Promise<Buffer>;
}

/** Answers a call by a function of its messages. */
export function answer<Q, R>(call: CriCall<Q, R>, work: (request: Q, signal: AbortSignal) => Promise<R>): Answer {
  const { service, name } = call;
  const reply = async (bytes: Buffer, signal: AbortSignal) =>
    call.response.encode(await work(decodeRequest(name, call.request, bytes), signal));
  return { service, name, reply };
}

/** @throws `InvalidArgument` for bytes that are no such message */
export function decodeRequest<Q>(name: string, message: Message<Q>, bytes: Buffer): Q {
  try {
    return message.decode(bytes);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RuntimeError('InvalidArgument', `${name}: the request cannot be read: ${why}`, { cause });
  }
}
