import test from 'ava';
import { hopByHopHeaders } from '../../src/scope/hop-by-hop.ts';

test('headers of the connection are those of RFC 9110 and those that Connection names', (t) => {
  const headers = ['connection', 'te', 'x-hop', 'x-other', 'content-length', 'http2-settings'];
  t.deepEqual(headers.filter(hopByHopHeaders(undefined)), ['connection', 'te', 'http2-settings']);
  t.deepEqual(headers.filter(hopByHopHeaders('close,  X-Hop')), ['connection', 'te', 'x-hop', 'http2-settings']);
});
