import test from 'ava';
import { newestFirst } from '../src/container/monitored-runtime.ts';
import { commandOf, environmentOf, exitCodeOf, logPathOf, signalName, signalNumber } from '../src/index.ts';

const metadata = { name: 'c', attempt: 0 };
const config = { metadata, image: 'x' };

test('a command replaces the entry point and the arguments of the image, arguments only its arguments', (t) => {
  const image = { entrypoint: ['/entry'], cmd: ['a', 'b'] };
  t.deepEqual(commandOf(config, image), ['/entry', 'a', 'b']);
  t.deepEqual(commandOf({ ...config, args: ['c'] }, image), ['/entry', 'c']);
  t.deepEqual(commandOf({ ...config, command: ['/own'] }, image), ['/own']);
  t.deepEqual(commandOf({ ...config, command: ['/own'], args: ['d'] }, image), ['/own', 'd']);
  t.throws(() => commandOf(config, {}), { code: 'InvalidArgument' });
  t.throws(() => commandOf({ ...config, command: ['a\0b'] }, {}), { code: 'InvalidArgument' });
});

test('the environment of the image goes over the defaults, that of the container over both', (t) => {
  const env = [
    { name: 'B', value: 'container' },
    { name: 'C', value: 'x=y' },
  ];
  const found = environmentOf({ ...config, env }, { env: ['A=image', 'B=image', 'D='] }, [
    ['A', 'default'],
    ['E', 'default'],
  ]);
  t.deepEqual(Object.fromEntries(found), { A: 'image', B: 'container', C: 'x=y', D: '', E: 'default' });
  for (const name of ['', 'A=B', 'A\0'])
    t.throws(() => environmentOf({ ...config, env: [{ name, value: '' }] }, {}, []), { code: 'InvalidArgument' });
});

test('signals have names and numbers', (t) => {
  for (const [text, number] of Object.entries({ SIGTERM: 15, term: 15, '9': 9, 'SIGRTMIN+3': 37 }))
    t.is(signalNumber(text), number);
  for (const text of ['', 'SIGNOPE', '0', '65', 'SIGRTMIN+40'])
    t.throws(() => signalNumber(text), { code: 'InvalidArgument' });
  t.is(signalName(9), 'SIGKILL');
  t.is(exitCodeOf(null, 'SIGTERM'), 143);
  t.is(exitCodeOf(3, null), 3);
});

test('a log stays in its directory', (t) => {
  t.is(logPathOf('/logs/', 'a/b.log'), '/logs/a/b.log');
  t.is(logPathOf(undefined, 'a'), undefined);
  t.throws(() => logPathOf('/logs', '../logs-of-others/a'), { code: 'InvalidArgument' });
});

test('of things made in the same millisecond the later one comes first', (t) => {
  const items = [
    { createdAt: 1, name: 'a' },
    { createdAt: 2, name: 'b' },
    { createdAt: 2, name: 'c' },
  ];
  t.deepEqual(
    newestFirst(items).map(({ name }) => name),
    ['c', 'b', 'a'],
  );
});
