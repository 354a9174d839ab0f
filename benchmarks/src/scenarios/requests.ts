import { httpRequest, podManifest } from '../fixtures.ts';
import { benchNamespace, firstPod, podsPath } from './load-objects.ts';
import { requestRounds } from './request-rounds.ts';
import type { Scenario } from './scenario.ts';

const clients = 64;
const getOne = httpRequest('GET', `${podsPath}/${firstPod}`);
const createOne = httpRequest('POST', podsPath, JSON.stringify(podManifest('made-{n}', benchNamespace)));

/** Replacing without a resourceVersion always succeeds, whoever was faster. */
const replaceOne = httpRequest('PATCH', `${podsPath}/${firstPod}`, '{"metadata":{"annotations":{"count":"{n}"}}}').replace(
  'application/json\r\nContent-Length',
  'application/merge-patch+json\r\nContent-Length',
);

/** `{n}` is three characters in the template and nine on the wire. */
function withNumberLength(request: string, body: string): string {
  return request.replace(
    /Content-Length: \d+/,
    `Content-Length: ${Buffer.byteLength(body) + 6 * (body.split('{n}').length - 1)}`,
  );
}

const bodyOf = (request: string): string => request.slice(request.indexOf('\r\n\r\n') + 4);
const create = withNumberLength(createOne, bodyOf(createOne));
const patch = withNumberLength(replaceOne, bodyOf(replaceOne));

export const requestScenarios: readonly Scenario[] = [
  {
    name: 'get',
    what: 'GET of one 1.5 KB pod, every filter on, beside bare node:http serving cached bytes',
    goal: { form: 'share', mark: 0.6 },
    everyAdapter: true,
    run: (stage) => {
      const job = { connections: clients, durationMs: stage.sliceMs, requests: [getOne] };
      return requestRounds(stage, [stage.floor, job], [stage.subject, job]);
    },
  },
  {
    name: 'get with 1,000 kinds',
    what: 'the same GET on a server with 1,000 more kinds, beside the server without them',
    goal: { form: 'times', mark: 1.1 },
    everyAdapter: false,
    run: async (stage) => {
      const many = await stage.start(['--kinds', new URL('../thousand-kinds.js', import.meta.url).pathname]);
      await stage.load.requests({
        port: many.port,
        connections: 1,
        count: 1,
        requests: [
          httpRequest('POST', podsPath.replace(benchNamespace, 'default'), JSON.stringify(podManifest(firstPod, 'default'))),
        ],
      });
      const job = { connections: clients, durationMs: stage.sliceMs };
      return requestRounds(
        stage,
        [stage.subject, { ...job, requests: [getOne] }],
        [many, { ...job, requests: [getOne.replace(`/${benchNamespace}/`, '/default/')] }],
      );
    },
  },
  {
    name: 'list 500 of 10,000',
    what: 'one page of 500 pods, beside writing one cached buffer of that size',
    goal: { form: 'times', mark: 2 },
    everyAdapter: true,
    run: (stage) => {
      const job = { connections: 4, durationMs: stage.sliceMs };
      return requestRounds(
        stage,
        [stage.floor, { ...job, requests: [httpRequest('GET', '/page')] }],
        [stage.subject, { ...job, requests: [httpRequest('GET', `${podsPath}?limit=500`)] }],
      );
    },
  },
  {
    name: 'list 10,000',
    what: 'all 10,000 pods (about 15 MB), beside writing one cached buffer of that size',
    goal: { form: 'times', mark: 2 },
    everyAdapter: true,
    run: (stage) => {
      const job = { connections: 2, durationMs: stage.sliceMs };
      return requestRounds(
        stage,
        [stage.floor, { ...job, requests: [httpRequest('GET', '/list')] }],
        [stage.subject, { ...job, requests: [httpRequest('GET', podsPath)] }],
      );
    },
  },
  {
    name: 'create',
    what: 'POST of a 1 KB pod with full validation, beside bare parse + stringify (memory: CPU; durable: requests a second, beside a durable put)',
    goal: { form: 'share', mark: 0.6 },
    everyAdapter: true,
    run: (stage) => {
      const job = { connections: clients, durationMs: stage.sliceMs, requests: [create.replaceAll(benchNamespace, 'created')] };
      return requestRounds(stage, [stage.floor, job], [stage.subject, job], stage.adapter === 'memory' ? 'cpu' : 'wall');
    },
  },
  {
    name: 'mixed',
    what: '16 GET, 2 pages of 500, 2 merge patches in turn, beside the same load on bare node:http',
    goal: { form: 'share', mark: 0.5 },
    everyAdapter: true,
    run: (stage) => {
      const mix = [...Array.from({ length: 8 }, () => getOne), httpRequest('GET', `${podsPath}?limit=500`), patch];
      const job = { connections: 16, durationMs: stage.sliceMs };
      const onFloor = mix.map((request) => (request.includes('?limit=500') ? httpRequest('GET', '/page') : request));
      return requestRounds(stage, [stage.floor, { ...job, requests: onFloor }], [stage.subject, { ...job, requests: mix }]);
    },
  },
];
