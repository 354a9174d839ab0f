import { getEventListeners } from 'node:events';
import test from 'ava';
import { addAbortListener, removeAbortListener } from '../../src/meta/abort-listeners.ts';

test('an abort signal has one platform listener for all waiting operations, and none without one', (t) => {
  const controller = new AbortController();
  const { signal } = controller;
  const called: number[] = [];
  const listeners = Array.from({ length: 1000 }, (_, i) => () => void called.push(i));
  for (const listener of listeners) addAbortListener(signal, listener);
  t.is(getEventListeners(signal, 'abort').length, 1);
  for (const listener of listeners.slice(2)) removeAbortListener(signal, listener);
  t.is(getEventListeners(signal, 'abort').length, 1);
  controller.abort();
  t.deepEqual(called, [0, 1]);
  t.is(getEventListeners(signal, 'abort').length, 0);
});

test('removing the last listener detaches from the signal, and another can be added', (t) => {
  const controller = new AbortController();
  let called = 0;
  const listener = () => {
    called += 1;
  };
  addAbortListener(controller.signal, listener);
  removeAbortListener(controller.signal, listener);
  removeAbortListener(controller.signal, listener);
  t.is(getEventListeners(controller.signal, 'abort').length, 0);
  addAbortListener(controller.signal, listener);
  addAbortListener(controller.signal, listener);
  controller.abort();
  t.is(called, 1);
});

test('a listener may remove others while it runs, and one added then is not called', (t) => {
  const controller = new AbortController();
  const { signal } = controller;
  const called: string[] = [];
  const second = () => void called.push('second');
  addAbortListener(signal, () => {
    called.push('first');
    removeAbortListener(signal, second);
    addAbortListener(signal, () => void called.push('late'));
  });
  addAbortListener(signal, second);
  controller.abort();
  addAbortListener(signal, second);
  t.deepEqual(called, ['first']);
  t.notThrows(() => addAbortListener(undefined, second));
});
