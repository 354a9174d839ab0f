import { optional, required, s } from '@keelson/core';
import test from 'ava';
import { isRuntimeAdapter, parseRuntimeOptions, type RuntimeAdapter, RuntimeOptionsError } from '../src/index.ts';

const optionsSchema = s.message('test.Options', 'Options of a test.', {
  endpoint: required(undefined, s.string({ minLength: 1 }), 'A socket.'),
  sizes: optional(undefined, s.list(s.int32({ minimum: 1 })), 'Some sizes.'),
});

const adapter: RuntimeAdapter<{ endpoint: string; sizes?: readonly number[] | undefined }> = {
  name: 'example',
  optionsSchema,
  open: () => Promise.reject(new Error('not part of this test')),
};
const without: RuntimeAdapter = { ...adapter, optionsSchema: s.message('test.NoOptions', 'No options.', {}) };

test('options that match the schema are returned', (t) => {
  t.like(parseRuntimeOptions(adapter, { endpoint: 'x', sizes: [1, 2] }), { endpoint: 'x', sizes: [1, 2] });
  t.notThrows(() => parseRuntimeOptions(without, {}));
});

for (const [title, options, message] of [
  ['a missing option', {}, 'the option endpoint of the runtime example: Required value'],
  [
    'an unknown option',
    { endpoint: 'x', shards: 1 },
    'the runtime example has no option shards; its options are: endpoint, sizes',
  ],
  ['a wrong type', { endpoint: 5 }, 'the option endpoint of the runtime example must be of type string, not number 5'],
  [
    'a wrong type in a list',
    { endpoint: 'x', sizes: [1, 'two'] },
    'the option sizes[1] of the runtime example must be of type integer of 32 bits, not string',
  ],
  [
    'a value out of range',
    { endpoint: 'x', sizes: [0] },
    /^the option sizes\[0\] of the runtime example: Invalid value: 0: [^;]+$/,
  ],
  ['a list in place of an object', [], 'the options of the runtime example must be an object, not array'],
] as const) {
  test(`${title} is rejected with one sentence that names the option`, (t) => {
    t.throws(() => parseRuntimeOptions(adapter, options), { instanceOf: RuntimeOptionsError, message });
  });
}

test('the rejection of an option of an adapter without options states that there are none', (t) => {
  t.throws(() => parseRuntimeOptions(without, { a: 1 }), {
    message: 'the runtime example has no option a; it accepts no options',
  });
});

test('a runtime adapter is recognized by its name, schema and function', (t) => {
  t.true(isRuntimeAdapter(adapter));
  for (const other of [
    undefined,
    null,
    'example',
    () => {},
    {},
    { ...adapter, name: 'Not A Name' },
    { ...adapter, optionsSchema: s.string() },
    { ...adapter, optionsSchema: {} },
    { ...adapter, open: undefined },
  ]) {
    t.false(isRuntimeAdapter(other));
  }
});
