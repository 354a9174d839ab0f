import test from 'ava';
import {
  type FieldError,
  fieldError,
  finalizersErrors,
  labelsErrors,
  statusErrors,
  validateObjectMeta,
} from '../../src/index.ts';
import { parseJson, parseYaml } from '../../src/internal.ts';

const kind = { group: '', kind: 'ConfigMap' };
const range = <T>(length: number, of: (i: number) => T) => Array.from({ length }, (_, i) => of(i));
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

test('an invalid object is answered with the first causes, and with how many more there are', (t) => {
  const errors: FieldError[] = range(250, (i) => fieldError.required(`spec.items[${i}]`));
  const { status } = statusErrors.invalid(kind, 'c', errors);
  t.is(status.details?.causes?.length, 100);
  t.true(
    status.message?.startsWith(
      'ConfigMap "c" is invalid: [spec.items[0]: Required value, spec.items[1]: Required value',
    ),
  );
  t.true(status.message?.endsWith('spec.items[99]: Required value, and at least 150 more]'));
  t.is(
    statusErrors.invalid(kind, 'c', errors.slice(0, 1)).status.message,
    'ConfigMap "c" is invalid: spec.items[0]: Required value',
  );
});

test('long values, fields, names and messages are cut', (t) => {
  const long = 'ä😀'.repeat(500_000);
  const answers = [
    statusErrors.invalid(
      kind,
      long,
      range(200, () => fieldError.invalid(`data[${long}]`, long, long)),
    ),
    statusErrors.invalid(kind, 'c', [
      fieldError.invalid(
        'metadata.ownerReferences',
        range(30_000, () => ({ long: 'x' })),
        'wrong',
      ),
    ]),
    statusErrors.badRequest(long),
    statusErrors.conflict({ group: '', resource: 'pods' }, long, long),
    statusErrors.internal(long),
  ];
  for (const { status } of answers) {
    t.true(bytesOf(status) < 256 * 1024, `${status.reason} ${bytesOf(status)}`);
    t.is(String(Buffer.from(`${status.message}`)), `${status.message}`, 'no surrogate pair is divided');
  }
  t.true(answers[0]?.status.message?.startsWith('ConfigMap "ä😀'));
});

test('the message of a 422 has a repeated text once, the causes have it as often as it occurs', (t) => {
  const wrong = fieldError.invalid('data', 'x', 'wrong');
  const { message, details } = statusErrors.invalid(kind, 'c', [wrong, wrong]).status;
  t.is(message, 'ConfigMap "c" is invalid: data: Invalid value: "x": wrong');
  t.is(details?.causes?.length, 2);
});

test('metadata with very many errors is rejected with a bounded number of causes', (t) => {
  const labels = Object.fromEntries(range(200_000, (i) => [`no label ${i}`, 'no value ']));
  const names = range(200_000, (i) => `no finalizer ${i}`);
  const owners = names.map((name) => ({ apiVersion: '', kind: '', name, uid: '', controller: true }));
  t.is(labelsErrors(labels, 'metadata.labels').length, 102);
  t.is(finalizersErrors(names, 'metadata.finalizers').length, 101);
  const meta = { name: 'c', labels, annotations: labels, finalizers: names, ownerReferences: owners };
  t.true(validateObjectMeta(meta, { nameRule: 'dns1123Subdomain', namespaced: false }).length <= 102);
});

test('repeated fields are reported a hundred times at most, with short paths', (t) => {
  const outer = 'k'.repeat(100_000);
  const repeated = range(1000, () => '"a":1').join(',');
  const json = parseJson(Buffer.from(`{"${outer}":{${repeated}}}`), { duplicates: true }).duplicateFields;
  const yaml = parseYaml(Buffer.from(`${outer}:\n${range(1000, () => '  a: 1\n').join('')}`)).repeatedKeys ?? [];
  for (const fields of [json, yaml]) {
    t.is(fields.length, 100);
    t.true(bytesOf(fields) < 100 * 1500);
  }
});
