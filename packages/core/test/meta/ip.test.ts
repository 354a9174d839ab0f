import test from 'ava';
import { isProxyableIP } from '../../src/meta/ip.ts';

test("addresses that lead back to the server's machine are not used for clients", (t) => {
  const own = [
    '127.0.0.1',
    '127.9.9.9',
    '0.0.0.0',
    '169.254.169.254',
    '224.0.0.1',
    '::1',
    '::',
    'fe80::1',
    'ff02::1',
    'ff01::1',
  ];
  for (const address of [...own, '::ffff:127.0.0.1', '::ffff:a9fe:a9fe', 'localhost', '', 'fe80::1%eth0', '127.1']) {
    t.false(isProxyableIP(address), address);
  }
  for (const address of ['10.0.0.1', '192.168.1.1', '192.0.2.1', 'fd00::2', '2001:db8::1', '::ffff:10.0.0.1']) {
    t.true(isProxyableIP(address), address);
  }
});
