import { pieceBytes } from '@keelson/core';
import test from 'ava';
import { PiecePool } from '../src/answer/piece-pool.ts';

test('a buffer is used again once its piece is given back, and only once for each time', (t) => {
  const pool = new PiecePool(2);
  const buffer = pool.take();
  t.is(buffer.length, pieceBytes);
  const piece = buffer.subarray(0, 10);
  t.true(pool.owns(piece));
  pool.giveBack(piece);
  t.false(pool.owns(piece));
  pool.giveBack(piece);
  t.is(pool.take().buffer, buffer.buffer);
  t.not(pool.take().buffer, buffer.buffer);
});

test('bytes of others are never used, and of free buffers no more are kept than the limit', (t) => {
  const pool = new PiecePool(1);
  const other = Buffer.alloc(pieceBytes);
  t.false(pool.owns(other));
  pool.giveBack(other);
  const [first, second] = [pool.take(), pool.take()];
  pool.giveBack(first);
  pool.giveBack(second);
  t.is(pool.take().buffer, first.buffer);
  const fresh = pool.take().buffer;
  t.false([first.buffer, second.buffer, other.buffer].includes(fresh));
});
