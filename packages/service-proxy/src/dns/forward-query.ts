import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';

/** Time for which one server is waited for. */
const timeoutMs = 2_000;
const headerBytes = 12;

/** A DNS server. */
export interface Resolver {
  readonly address: string;
  readonly port: number;
}

/**
 * Asks other servers one after the other, and returns the first answer with the id of the query. Undefined when none
 * answers.
 */
export async function forwardQuery(
  query: Buffer,
  transport: 'udp' | 'tcp',
  resolvers: readonly Resolver[],
): Promise<Buffer | undefined> {
  // An id and a port that are hard to guess protect against forged answers.
  const id = randomInt(0x10000);
  const asked = Buffer.from(query);
  asked.writeUInt16BE(id);
  for (const resolver of resolvers) {
    const answer = await (transport === 'udp' ? askUdp(asked, resolver) : askTcp(asked, resolver)).catch(
      () => undefined,
    );
    if (answer === undefined) continue;
    answer.writeUInt16BE(query.readUInt16BE());
    return answer;
  }
  return undefined;
}

function isAnswer(answer: Buffer, query: Buffer): boolean {
  return (
    answer.length >= headerBytes && answer.readUInt16BE() === query.readUInt16BE() && ((answer[2] ?? 0) & 0x80) !== 0
  );
}

function askUdp(query: Buffer, { address, port }: Resolver): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    const end = (settle: () => void) => {
      clearTimeout(timer);
      socket.removeAllListeners().on('error', () => {});
      socket.close();
      settle();
    };
    // Not injected: time limit of a call to another process, which takes real time.
    const timer = setTimeout(() => end(() => reject(new Error('no answer'))), timeoutMs);
    socket.on('error', (error) => end(() => reject(error)));
    socket.on('message', (answer) => {
      if (isAnswer(answer, query)) end(() => resolve(answer));
    });
    socket.connect(port, address, () => socket.send(query));
  });
}

function askTcp(query: Buffer, { address, port }: Resolver): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port });
    let received = Buffer.alloc(0);
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no answer')));
    socket.on('connect', () => socket.write(framed(query)));
    socket.on('data', (data: Buffer) => {
      received = Buffer.concat([received, data]);
      const [message] = messagesIn(received);
      if (message === undefined) return;
      socket.destroy();
      if (isAnswer(message, query)) resolve(Buffer.from(message));
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('no answer')));
  });
}

/** A message as it is sent over TCP: after its length. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/** The first complete message of received bytes. */
export function messagesIn(received: Buffer): [message: Buffer | undefined, rest: Buffer] {
  if (received.length < 2) return [undefined, received];
  const end = 2 + received.readUInt16BE();
  return received.length < end ? [undefined, received] : [received.subarray(2, end), received.subarray(end)];
}
