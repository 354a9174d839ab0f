import { Buffer } from 'node:buffer';
import { decoderOf, protobufDecoderOf, protobufEncoderOf } from '@keelson/core/internal';
import { Pod } from '@keelson/kinds';
import { podManifest } from '../fixtures.ts';

/**
 * Compares the cost of protobuf with that of JSON, for a pod of about 1.5 KB as a server stores it. Run: `node
 * benchmarks/dist/src/micro/protobuf-codec.js`.
 */
const rounds = 15;
const callsPerRound = 4000;
/** A body in protobuf may cost this many times the parse of the same object as JSON. */
const decodeTarget = 2;

const { value } = decoderOf(Pod.schema)(podManifest('bench-7d4b9c6f5-x2x7k', 'default'));
const pod = {
  ...value,
  metadata: {
    ...value.metadata,
    uid: '0b6f5f4e-5d0e-4f4f-9d44-4a5b8d6b1a11',
    resourceVersion: '123456',
    creationTimestamp: '2026-01-02T15:04:05Z',
  },
};

const json = Buffer.from(JSON.stringify(pod));
const encode = protobufEncoderOf(Pod.schema);
const decode = protobufDecoderOf(Pod.schema);
const complete = decoderOf(Pod.schema);
const bytes = encode(pod);

const operations: Readonly<Record<string, () => unknown>> = {
  'JSON.parse': () => JSON.parse(json.toString('utf8')),
  'protobuf decode': () => decode(bytes),
  'JSON body to object': () => complete(JSON.parse(json.toString('utf8'))),
  'protobuf body to object': () => complete(decode(bytes)),
  'JSON.stringify': () => Buffer.from(JSON.stringify(pod)),
  'protobuf encode': () => encode(pod),
  'stored JSON to protobuf': () => encode(JSON.parse(json.toString('utf8'))),
};

/** Microseconds per call, the best of several interleaved rounds. */
function measure(): Map<string, number> {
  const best = new Map<string, number>();
  let sink: unknown;
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, call] of Object.entries(operations)) {
      const start = process.hrtime.bigint();
      for (let index = 0; index < callsPerRound; index += 1) sink = call();
      const micros = Number(process.hrtime.bigint() - start) / 1000 / callsPerRound;
      best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, micros));
    }
  }
  if (sink === undefined) throw new Error('nothing was measured');
  return best;
}

const best = measure();
const parse = best.get('JSON.parse') ?? Number.NaN;
process.stdout.write(`pod: ${json.length} bytes as JSON, ${bytes.length} as protobuf\n`);
for (const [name, micros] of best) {
  process.stdout.write(
    `${name.padEnd(26)} ${micros.toFixed(2).padStart(7)} us  ${(micros / parse).toFixed(2)} x JSON.parse\n`,
  );
}
const ratio = (best.get('protobuf decode') ?? Number.NaN) / parse;
process.stdout.write(`decode ratio ${ratio.toFixed(2)} (target at most ${decodeTarget})\n`);
