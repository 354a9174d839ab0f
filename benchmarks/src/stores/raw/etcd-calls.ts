import { Client, credentials } from '@grpc/grpc-js';
import type { Raw } from '../ground.ts';
import { keepInFlight } from '../in-flight.ts';

const asItIs = (bytes: Buffer): Buffer => bytes;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}

/** A field of type bytes or message. */
const bytesField = (number: number, bytes: Buffer): Buffer =>
  Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
const numberField = (number: number, value: number): Buffer => Buffer.concat([varint(number * 8), varint(value)]);

/** TxnRequest: put when the key does not exist (its modRevision is 0). Field numbers: etcd's `rpc.proto`. */
function create(key: Buffer, value: Buffer): Buffer {
  const modTarget = 2;
  const compare = Buffer.concat([numberField(2, modTarget), bytesField(3, key)]);
  const put = bytesField(2, Buffer.concat([bytesField(1, key), bytesField(2, value)]));
  return Buffer.concat([bytesField(1, compare), bytesField(2, put)]);
}

/** Transactions and ranges by grpc-js alone: requests encoded by hand, answers left as bytes, nothing repeated. */
export function etcdCalls(url: string, value: Buffer): Raw {
  const client = new Client(url.replace('http://', ''), credentials.createInsecure(), {
    'grpc.max_receive_message_length': 64 * 1024 * 1024,
    'grpc.use_local_subchannel_pool': 1,
  });
  const call = (method: string, request: Buffer): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(`/etcdserverpb.KV/${method}`, asItIs, asItIs, request, (error, answer) => {
        if (error !== null) reject(error);
        else resolve(answer ?? Buffer.alloc(0));
      });
    });
  const keyOf = (key: string): Buffer => Buffer.from(`/raw${key}`);
  const putNew = (key: string) => call('Txn', create(keyOf(key), value));
  const behind = Buffer.from('/raw0');
  let written = 0;
  return {
    what: 'transactions by grpc-js (put if absent), encoded by hand, answers not decoded',
    write: (inFlight, durationMs) => keepInFlight(inFlight, durationMs, () => putNew(`-written/${written++}`)),
    fill: async (keys) => {
      for (let at = 0; at < keys.length; at += 64) await Promise.all(keys.slice(at, at + 64).map(putNew));
    },
    get: (key) => call('Range', bytesField(1, keyOf(key))),
    page: (start) =>
      call('Range', Buffer.concat([bytesField(1, keyOf(start)), bytesField(2, behind), numberField(3, 500)])),
    close: async () => client.close(),
  };
}
