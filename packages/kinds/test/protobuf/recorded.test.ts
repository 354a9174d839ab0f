import { readFileSync } from 'node:fs';
import type { Schema } from '@keelson/core';
import { decodeEnvelope, decoderOf, deleteOptionsSchema, parseProtobufBody } from '@keelson/core/internal';
import test from 'ava';
import { builtinKinds } from '../../src/index.ts';
import { goBytes } from './go-writer.ts';

/** What kubectl 1.32 sent, and what the same command printed with `--dry-run=client -o json`, as far as it can. */
interface Recorded {
  readonly command: string;
  readonly method: string;
  readonly hex: string;
  readonly json: Readonly<Record<string, unknown>> & { readonly kind: string; readonly apiVersion: string };
}

// Compiled tests run from dist/test/protobuf; the fixture stays in the source tree.
const file = new URL('../../../test/protobuf/fixtures/kubectl.json', import.meta.url);
const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded[];

function schemaOf({ kind, apiVersion }: Recorded['json']): Schema<unknown> {
  if (kind === 'DeleteOptions') return deleteOptionsSchema;
  const found = builtinKinds.find((candidate) => candidate.kind === kind && candidate.apiVersion === apiVersion);
  if (found === undefined) throw new Error(`no kind ${kind}`);
  return found.schema;
}

for (const { command, method, hex, json } of recorded) {
  const bytes = Buffer.from(hex, 'hex');
  const schema = schemaOf(json);

  test(`${command}: the body of the ${method} is the object that kubectl shows`, (t) => {
    const value = parseProtobufBody(bytes, { apiVersion: json.apiVersion, kind: json.kind, schema });
    t.is(value['kind'], json.kind);
    t.is(value['apiVersion'], json.apiVersion);
    const decoded = decoderOf(schema)(value);
    t.deepEqual(decoded.unknownFields, []);
    t.is(JSON.stringify(decoded.value), JSON.stringify(decoderOf(schema)(json).value));
  });

  test(`${command}: the recorded bytes are those of the Go writer that other tests use`, (t) => {
    const { raw, contentType, contentEncoding } = decodeEnvelope(bytes);
    t.is(contentType, '');
    t.is(contentEncoding, '');
    const value = parseProtobufBody(bytes, { apiVersion: json.apiVersion, kind: json.kind, schema });
    t.is(goBytes(schema, value).toString('hex'), raw.toString('hex'));
  });
}

test('recordings cover exactly the expected kinds', (t) => {
  t.deepEqual([...new Set(recorded.map(({ json }) => json.kind))].sort(), [
    'ConfigMap',
    'DeleteOptions',
    'Deployment',
    'Ingress',
    'Namespace',
    'Secret',
    'SelfSubjectAccessReview',
    'SelfSubjectReview',
    'Service',
    'ServiceAccount',
  ]);
});
