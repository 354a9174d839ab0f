import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readCertificateRequest } from '@keelson/kinds';
import test from 'ava';
import { requestForNode } from '../../../src/startup/credentials/certificate-request.ts';

test('a request contains the name of the node and its public key, and is signed by that key', async (t) => {
  for (const name of ['n1', `long-${'x'.repeat(240)}`]) {
    const { key, request } = await requestForNode(name);
    const read = readCertificateRequest(request);
    t.deepEqual(read.subject, { commonName: `system:node:${name}`, organizations: ['system:nodes'], others: [] });
    const own = createPublicKey(createPrivateKey(key));
    t.deepEqual(read.publicKey, own.export({ type: 'spki', format: 'der' }));
    t.is(own.asymmetricKeyDetails?.namedCurve, 'prime256v1');
  }
});

const openssl = spawnSync('openssl', ['version']).status === 0 ? test : test.skip;

openssl('openssl understands the request and finds its signature good', async (t) => {
  const { request } = await requestForNode('n1');
  const { status, stdout, stderr } = spawnSync('openssl', ['req', '-verify', '-noout', '-subject'], { input: request });
  t.is(status, 0, String(stderr));
  t.regex(String(stdout), /O ?= ?system:nodes, CN ?= ?system:node:n1/);
});
