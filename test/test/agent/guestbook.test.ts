import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { removeDirectory, runKeelson, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';
import { guestbookFolder } from '../../src/manifests.ts';

const waitMs = 150_000;
const dnsAddress = '127.197.0.10';
const command = process.platform === 'linux' ? findKubectl() : undefined;
const onLinux = command === undefined ? test.skip : test;

function pageAt(url: string, body?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request(url, { method, headers: { host: 'guestbook.example.com' }, agent: false }, (answer) => {
      text(answer).then((page) => (answer.statusCode === 200 ? resolve(page) : reject(new Error(page))), reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Addresses on which any process listens, from the kernel: `7F600005:1F40`. */
async function listening(): Promise<Set<string>> {
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').slice(1);
  const listens = lines.map((line) => line.trim().split(/\s+/)).filter(([, , , state]) => state === '0A');
  return new Set(listens.map(([, address = '']) => address));
}

const hexAddress = (ip: string, port: number) =>
  `${ip
    .split('.')
    .reverse()
    .map((part) => Number(part).toString(16).padStart(2, '0'))
    .join('')}:${port.toString(16).padStart(4, '0')}`.toUpperCase();

onLinux(
  'keelson up serves the guestbook through its services and its Ingress, and leaves nothing behind',
  async (t) => {
    t.timeout(400_000);
    const data = await temporaryDirectory();
    t.teardown(() => removeDirectory(data));
    // After a failure the pods would use their ports of the machine until it restarts.
    t.teardown(() => runKeelson(['down', '--data', data]));
    // Other clusters of this machine choose among 127.96.0.0/16 to 127.111.0.0/16.
    const addressOptions = ['--service-cluster-ip-range', '127.197.0.0/16', '--cluster-dns-listen', `${dnsAddress}:53`];
    const options = ['--log-level', 'warn', '--ingress-listen', '127.0.0.1:0', ...addressOptions];
    const server = await startKeelson(data, options, 'up');
    t.teardown(() => server.kill());
    const kubectl = new Kubectl(command ?? '', server.kubeconfig, data);
    const url = await eventually(() => /Ingresses:\s+(http:\S+)/.exec(server.output().stderr)?.[1], waitMs);
    await kubectl.run(['apply', '-f', guestbookFolder]);
    t.regex(await eventually(() => pageAt(url), waitMs), /^<h1>Hello from frontend-/);
    t.regex(await pageAt(url, 'was here'), /<pre>was here<\/pre>/);
    // Only root may listen on port 53 and give containers their own resolver.
    if (process.getuid?.() === 0) {
      const words = ['exec', '-n', 'guestbook', 'deploy/frontend', '--', 'getent', 'hosts', 'store'];
      const dns = await kubectl.run(words);
      const ip = await kubectl.run(['get', 'service', 'store', '-n', 'guestbook', '-o', 'jsonpath={.spec.clusterIP}']);
      t.regex(dns, new RegExp(`^${ip.replaceAll('.', '\\.')}\\s+store\\.guestbook\\.svc\\.cluster\\.local`));
    }
    const services = await kubectl.json<{ items: { spec: { clusterIP: string; ports: { port: number }[] } }[] }>([
      ...['get', 'services', '-n', 'guestbook'],
    ]);
    const addresses = services.items.map(({ spec }) => hexAddress(spec.clusterIP, spec.ports[0]?.port ?? 0));
    await eventually(async () => {
      const now = await listening();
      return addresses.every((address) => now.has(address));
    }, waitMs);
    const [ingress] = (
      await kubectl.json<{ items: { status: { loadBalancer: { ingress: { ip: string }[] } } }[] }>([
        ...['get', 'ingresses', '-n', 'guestbook'],
      ])
    ).items;
    t.is(ingress?.status.loadBalancer.ingress[0]?.ip, '127.0.0.1');

    await kubectl.run(['delete', 'namespace', 'guestbook', '--timeout=60s']);
    await eventually(async () => {
      const now = await listening();
      return !addresses.some((address) => now.has(address));
    }, waitMs);
    const { stdout } = await promisify(execFile)('ps', ['-eo', 'args']);
    t.false(stdout.includes('eval(process.env.PROGRAM)'), stdout);
    t.is(await server.stop(), 0, server.output().stderr);
  },
);
