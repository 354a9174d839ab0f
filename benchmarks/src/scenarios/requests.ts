import { httpRequest, patchRequest, podManifest, templatedPod } from '../fixtures.ts';
import { benchNamespace, createdNamespace, firstPod, podsPath } from './load-objects.ts';
import { requestRounds } from './request-rounds.ts';
import type { Scenario } from './scenario.ts';

const clients = 64;
const objectPath = `${podsPath}/${firstPod}`;
const getOne = httpRequest('GET', objectPath);
const patchOne = patchRequest(objectPath);
const inOther = (namespace: string) => podsPath.replace(`/${benchNamespace}/`, `/${namespace}/`);
const createOne = httpRequest(
  'POST',
  inOther(createdNamespace),
  JSON.stringify(templatedPod('made-{n}', createdNamespace)),
);
const onePage = httpRequest('GET', `${podsPath}?limit=500`);

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
    name: 'get with 1000 kinds',
    what: 'the same GET on a server with 1,000 more kinds, beside the server without them',
    goal: { form: 'times', mark: 1.1 },
    everyAdapter: false,
    run: async (stage) => {
      const many = await stage.start(['--kinds', new URL('../thousand-kinds.js', import.meta.url).pathname]);
      const few = await stage.start([]);
      const path = inOther('default');
      const made = httpRequest('POST', path, JSON.stringify(podManifest(firstPod, 'default')));
      for (const { port } of [few, many])
        await stage.load.requests({ port, connections: 1, count: 1, requests: [made] });
      const job = {
        connections: clients,
        durationMs: stage.sliceMs,
        requests: [httpRequest('GET', `${path}/${firstPod}`)],
      };
      const measured = await requestRounds(stage, [few, job], [many, job]);
      await few.stop();
      await many.stop();
      return measured;
    },
  },
  {
    name: 'list 500',
    what: 'one page of 500 of the 10,000 pods, beside writing one cached buffer of that size',
    goal: { form: 'times', mark: 2 },
    everyAdapter: true,
    run: (stage) => {
      const job = { connections: 4, durationMs: stage.sliceMs };
      return requestRounds(
        stage,
        [stage.floor, { ...job, requests: [httpRequest('GET', '/page')] }],
        [stage.subject, { ...job, requests: [onePage] }],
      );
    },
  },
  {
    name: 'list 10000',
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
    name: 'list by label',
    what: 'the pods with one label value, 1 % of 10,000, beside a loop over parsed labels that joins the cached bytes of the matches',
    goal: { form: 'times', mark: 2 },
    everyAdapter: false,
    run: (stage) => {
      const job = { connections: 4, durationMs: stage.sliceMs };
      return requestRounds(
        stage,
        [stage.floor, { ...job, requests: [httpRequest('GET', '/selected')] }],
        [stage.subject, { ...job, requests: [httpRequest('GET', `${podsPath}?labelSelector=shard%3D7`)] }],
      );
    },
  },
  {
    name: 'list gzip',
    what: 'all 10,000 pods compressed, beside the same list as it is',
    goal: { form: 'times', mark: 1 },
    everyAdapter: false,
    run: (stage) => {
      const job = { connections: 2, durationMs: stage.sliceMs };
      return requestRounds(
        stage,
        [stage.subject, { ...job, requests: [httpRequest('GET', podsPath)] }],
        [stage.subject, { ...job, requests: [httpRequest('GET', podsPath, undefined, { 'Accept-Encoding': 'gzip' })] }],
      );
    },
  },
  {
    name: 'create',
    what: 'POST of a pod of 1.3 KB, as controllers send it, with full validation, beside bare parse + stringify (memory: CPU; durable: time per request of 64 clients, beside parse, stringify and a durable put)',
    goal: { form: 'share', mark: 0.6, durableMark: 0.5 },
    everyAdapter: true,
    run: (stage) => {
      const job = { connections: clients, durationMs: stage.sliceMs, requests: [createOne] };
      return requestRounds(
        stage,
        [stage.floor, job],
        [stage.subject, job],
        stage.adapter === 'memory' ? 'cpu' : 'wall',
      );
    },
  },
  {
    name: 'mixed',
    what: '8 GET, a page of 500, a merge patch in turn, beside the same load on bare node:http',
    goal: { form: 'share', mark: 0.5 },
    everyAdapter: true,
    run: (stage) => {
      const mix = [...Array.from({ length: 8 }, () => getOne), onePage, patchOne];
      const job = { connections: 16, durationMs: stage.sliceMs };
      const onFloor = mix.map((request) => (request === onePage ? httpRequest('GET', '/page') : request));
      return requestRounds(
        stage,
        [stage.floor, { ...job, requests: onFloor }],
        [stage.subject, { ...job, requests: mix }],
      );
    },
  },
];
