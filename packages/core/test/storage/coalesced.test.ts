import test from 'ava';
import { Coalesced } from '../../src/storage-adapter.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A read whose results the test gives, in the order in which the reads began. */
function controlled() {
  const results: ((value: number | Error) => void)[] = [];
  const read = () =>
    new Promise<number>((resolve, reject) =>
      results.push((value) => (typeof value === 'number' ? resolve(value) : reject(value))),
    );
  return { results, shared: new Coalesced(read) };
}

test('callers of one turn share a read, and callers that come during a read share the next', async (t) => {
  const { results, shared } = controlled();
  const first = [shared.get(), shared.get()];
  await turn();
  t.is(results.length, 1);
  const second = [shared.get(), shared.get()];
  await turn();
  t.is(results.length, 1, 'one read at a time');
  results[0]!(7);
  t.deepEqual(await Promise.all(first), [7, 7]);
  await turn();
  t.is(results.length, 2);
  const third = shared.get();
  results[1]!(9);
  t.deepEqual(await Promise.all(second), [9, 9]);
  await turn();
  t.is(results.length, 3, 'a caller never receives the result of a read that began before its call');
  results[2]!(11);
  t.is(await third, 11);
});

test('a failed read fails its own callers and no later one', async (t) => {
  const { results, shared } = controlled();
  const failed = [shared.get(), shared.get()].map((read) => t.throwsAsync(read, { message: 'down' }));
  await turn();
  const next = shared.get();
  results[0]!(new Error('down'));
  await Promise.all(failed);
  await turn();
  results[1]!(3);
  t.is(await next, 3);
});

test('a read that throws at once is a failed read like any other', async (t) => {
  let fail = true;
  const shared = new Coalesced<number>(() => {
    if (fail) throw new Error('not connected');
    return Promise.resolve(1);
  });
  await t.throwsAsync(shared.get(), { message: 'not connected' });
  fail = false;
  t.is(await shared.get(), 1);
});

test('an aborted caller gets Timeout, and the others of the same read their result', async (t) => {
  const { results, shared } = controlled();
  const caller = new AbortController();
  const aborted = shared.get(caller.signal);
  const other = shared.get();
  await turn();
  caller.abort();
  await t.throwsAsync(aborted, { code: 'Timeout' });
  await t.throwsAsync(shared.get(caller.signal), { code: 'Timeout' });
  results[0]!(5);
  t.is(await other, 5);
  await turn();
  t.is(results.length, 1, 'a caller that has aborted already starts no read');
});
