import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import test from 'ava';
import { freePorts } from '../src/free-ports.ts';

const count = 100;
const module = new URL('../src/free-ports.js', import.meta.url).href;

test('processes receive different ports, none of which the system assigns', async (t) => {
  const program = `import { freePorts } from ${JSON.stringify(module)};
    process.stdout.write(JSON.stringify(await freePorts(${count})));
    process.stdin.resume();`;
  const children = Array.from({ length: 3 }, () => {
    const running = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    t.teardown(() => running.child.kill('SIGKILL'));
    return new Promise<number[]>((resolve, reject) => {
      running.child.stdout?.once('data', (data) => resolve(JSON.parse(String(data))));
      running.catch(reject);
    });
  });
  const all = (await Promise.all([freePorts(count), freePorts(count), ...children])).flat();
  t.is(new Set(all).size, 5 * count);
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '49152 65535');
  const [first = 0, last = 0] = range.split(/\s/).map(Number);
  t.deepEqual(
    all.filter((port) => port >= first && port <= last),
    [],
  );
});
