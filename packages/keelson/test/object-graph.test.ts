import { token } from '@keelson/core';
import test from 'ava';
import { objectGraph } from '../src/object-graph.ts';

const Word = token<string>('test.Word');
const Length = token<{ readonly length: number }>('test.Length');

test('what modules bind is made when it is asked for, once, of what other modules bind', (t) => {
  const made: string[] = [];
  const get = objectGraph(
    (bind) =>
      bind(Length, [Word], (word) => {
        made.push('length');
        return { length: word.length };
      }),
    (bind) =>
      bind(Word, [], () => {
        made.push('word');
        return 'keel';
      }),
  );
  t.deepEqual(made, []);
  t.deepEqual(get(Length), { length: 4 });
  t.is(get(Length), get(Length));
  t.is(get(Word), 'keel');
  t.deepEqual(made, ['word', 'length']);
});

test('what nobody binds is refused by its name, and nothing is made', (t) => {
  const get = objectGraph((bind) => bind(Length, [Word], ({ length }) => ({ length })));
  t.throws(() => get(Length), { message: /test\.Word/ });
});
