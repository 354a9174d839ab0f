import { httpRequest, podManifest } from '../fixtures.ts';
import { Audience } from './audience.ts';
import { benchNamespace, firstPod, podsPath } from './load-objects.ts';
import { requestRounds } from './request-rounds.ts';
import type { Goal, Measurement, Round, Scenario } from './scenario.ts';
import { createWatched, watchRequest } from './watched-object.ts';

const protobuf = 'application/vnd.kubernetes.protobuf';
const table = 'application/json;as=Table;g=meta.k8s.io;v=v1';

/** The same request for an answer in another form. */
function accepting(request: string, type: string): string {
  return request.replace('Accept: application/json\r\n', `Accept: ${type}\r\n`);
}

const wholeList = httpRequest('GET', podsPath);
const getOne = httpRequest('GET', `${podsPath}/${firstPod}`);

async function bodyBytes(port: number, path: string, accept: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { accept, 'accept-encoding': 'identity' },
  });
  return (await response.arrayBuffer()).byteLength;
}

/** The list of everything in one form, beside the same list in JSON on the same server. */
function listScenario(name: string, what: string, goal: Goal, accept: string): Scenario {
  return {
    name,
    what: `all 10,000 pods ${what}, beside the same list in JSON`,
    goal,
    everyAdapter: false,
    run: async (stage) => {
      const job = { connections: 2, durationMs: stage.sliceMs };
      const measured = await requestRounds(
        stage,
        [stage.subject, { ...job, requests: [wholeList] }],
        [stage.subject, { ...job, requests: [accepting(wholeList, accept)] }],
      );
      const perObject = (side: keyof Round) => Math.min(...measured.rounds.map((round) => round[side])) / stage.objects;
      const { port } = stage.subject;
      return {
        ...measured,
        notes: {
          ...measured.notes,
          'µs per object': perObject('subject'),
          'µs per object in JSON': perObject('floor'),
          'bytes per object': (await bodyBytes(port, podsPath, accept)) / stage.objects,
          'bytes per object in JSON': (await bodyBytes(port, podsPath, 'application/json')) / stage.objects,
        },
      };
    },
  };
}

const getProtobuf: Scenario = {
  name: 'get protobuf',
  what: 'GET of one 1.5 KB pod in protobuf, beside the same GET in JSON',
  goal: { form: 'times', mark: 1.05 },
  everyAdapter: false,
  run: (stage) => {
    const job = { connections: 64, durationMs: stage.sliceMs };
    return requestRounds(
      stage,
      [stage.subject, { ...job, requests: [getOne] }],
      [stage.subject, { ...job, requests: [accepting(getOne, protobuf)] }],
    );
  },
};

/** Objects that were never requested in protobuf, new ones for each round. */
const freshObjects = 2_000;
const freshNamespace = 'encoded';

/** CPU µs of one JSON.parse of a pod, in this process. */
function parseCost(json: string): number {
  const calls = 5_000;
  const before = process.cpuUsage();
  let keys = 0;
  for (let call = 0; call < calls; call += 1) keys += Object.keys(JSON.parse(json)).length;
  const { user, system } = process.cpuUsage(before);
  if (keys === 0) throw new Error('nothing was parsed');
  return (user + system) / calls;
}

const firstEncoding: Scenario = {
  name: 'first protobuf list',
  what: 'what the first list in protobuf costs beyond the second, for each object: its encoding, beside JSON.parse of the object',
  goal: { form: 'times', mark: 4 },
  everyAdapter: false,
  run: async (stage) => {
    const { load, subject } = stage;
    const { port } = subject;
    const count = Math.min(freshObjects, stage.objects);
    const path = podsPath.replace(`/${benchNamespace}/`, `/${freshNamespace}/`);
    const once = (request: string) => load.requests({ port, connections: 1, count: 1, requests: [request] });
    const cpuOf = async (request: string) => {
      const before = subject.cpu();
      await once(request);
      return ((subject.cpu() - before) * 1e6) / count;
    };
    await once(httpRequest('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name: freshNamespace } })));
    const create = httpRequest('POST', path, JSON.stringify(podManifest('pod-{n}', freshNamespace)));
    const list = accepting(httpRequest('GET', path), protobuf);
    const json = await (await fetch(`http://127.0.0.1:${port}${podsPath}/${firstPod}`)).text();
    const rounds: Round[] = [];
    for (let round = 0; round <= stage.rounds; round += 1) {
      await load.requests({ port, connections: 32, count, requests: [create] });
      const first = await cpuOf(list);
      const second = await cpuOf(list);
      await once(httpRequest('DELETE', `${path}?gracePeriodSeconds=0`));
      const floor = parseCost(json);
      if (round > 0) rounds.push({ floor, subject: Math.max(first - second, 0) });
      stage.progress(`round ${round} of ${stage.rounds}`);
    }
    return { unit: 'CPU µs per object', rounds, notes: { objects: count } };
  },
};

const watchedBytes = 1_200;

const watchTwoEncodings: Scenario = {
  name: 'watch in two encodings',
  what: 'one event to 500 watchers in JSON and 500 in protobuf, the write included, beside 1,000 in JSON',
  goal: { form: 'times', mark: 1.1 },
  everyAdapter: false,
  run: async (stage): Promise<Measurement> => {
    const audienceOf = async (name: string, accepts: readonly string[]) => {
      // Every frame has more bytes than the data, in both encodings.
      const object = { ...(await createWatched(stage, stage.subject, name, watchedBytes)), leastFrame: watchedBytes };
      await Audience.warmUp(stage, stage.subject, object);
      const request = await watchRequest(stage.subject, object);
      return Audience.open(
        stage,
        stage.subject,
        object,
        accepts.map((accept) => accepting(request, accept)),
      );
    };
    const json = await audienceOf('in-json', ['application/json']);
    const both = await audienceOf('in-both', ['application/json', protobuf]);
    const rounds: Round[] = [];
    try {
      for (let round = 0; round <= stage.rounds; round += 1) {
        const pair = { floor: await json.delivery(), subject: await both.delivery() };
        if (round > 0) rounds.push(pair);
        stage.progress(`round ${round} of ${stage.rounds}`);
      }
    } finally {
      await Promise.all([json.close(), both.close()]);
    }
    return { unit: 'CPU µs per delivery', rounds, notes: { watchers: stage.watchers } };
  },
};

/** The same objects in other encodings, beside JSON. */
export const representationScenarios: readonly Scenario[] = [
  listScenario('list 10000 protobuf', 'in protobuf, encoded before', { form: 'times', mark: 1.05 }, protobuf),
  listScenario('list 10000 table', 'as a Table', { form: 'times', mark: 40 }, table),
  getProtobuf,
  firstEncoding,
  watchTwoEncodings,
];
