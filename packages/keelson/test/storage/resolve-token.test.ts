import { type BindingModule, token } from '@keelson/core/runtime';
import test from 'ava';
import { resolveToken } from '../../src/storage/resolve-token.ts';

const Word = token<string>('test.Word');
const Length = token<number>('test.Length');
const Report = token<string>('test.Report');

const lengthOfWord: BindingModule = (bind) => bind(Length, [Word], (word) => word.length);

test('a value is created from the bindings of several modules, and every factory runs at most once', (t) => {
  const created: string[] = [];
  const words: BindingModule = (bind) => {
    bind(Word, [], () => {
      created.push('word');
      return 'keel';
    });
    bind(Report, [Word, Length], (word, length) => `${word} ${length}`);
  };
  t.is(resolveToken(Report, lengthOfWord, words), 'keel 4');
  t.deepEqual(created, ['word']);
});

test('a factory whose value is not required does not run', (t) => {
  const words: BindingModule = (bind) => {
    bind(Word, [], () => 'keel');
    bind(Report, [], () => t.fail() as never);
  };
  t.is(resolveToken(Length, lengthOfWord, words), 4);
});

test('an error names the token that no module binds, or that two modules bind', (t) => {
  t.throws(() => resolveToken(Length, lengthOfWord), { message: 'no module binds test.Word' });
  t.throws(() => resolveToken(Length, lengthOfWord, lengthOfWord), { message: 'two modules bind test.Length' });
});

test('an error lists the tokens of a cycle', (t) => {
  const cycle: BindingModule = (bind) => bind(Word, [Length], (length) => 'k'.repeat(length));
  t.throws(() => resolveToken(Word, lengthOfWord, cycle), {
    message: 'a token depends on itself: test.Word -> test.Length -> test.Word',
  });
});
