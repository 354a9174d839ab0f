import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Scenario } from './scenario.ts';

const testPlaneProgram = fileURLToPath(new URL('../start-test-plane.js', import.meta.url));
const bareKoa = fileURLToPath(new URL('../floors/koa-floor-server.js', import.meta.url));

export const testPlaneStart: Scenario = {
  name: 'plane in the test process',
  what: 'milliseconds from import to a plane that answers, beside the 50 ms it may take',
  goal: { form: 'times', mark: 1 },
  everyAdapter: false,
  run: async (stage) => {
    const rounds = [];
    for (let round = 0; round < stage.rounds; round += 1) {
      const { stdout, stderr, status } = spawnSync(process.execPath, [testPlaneProgram], {
        encoding: 'utf8',
        timeout: 20_000,
      });
      if (status !== 0) throw new Error(`the program with the plane ended with ${status}: ${stderr}`);
      rounds.push({ floor: 50, subject: Number(stdout.trim()) });
    }
    return { unit: 'ms', rounds };
  },
};

export const serverStart: Scenario = {
  name: 'start to first GET',
  what: 'wall milliseconds from exec to the first answer, beside a bare Koa server',
  goal: { form: 'times', mark: 4 },
  everyAdapter: true,
  run: async (stage) => {
    const rounds = [];
    for (let round = 0; round < stage.rounds; round += 1) {
      const floorAt = performance.now();
      const floor = await stage.startProgram(process.execPath, [bareKoa]);
      await fetch(`http://127.0.0.1:${floor.port}/`);
      const below = performance.now() - floorAt;
      await floor.stop();
      const at = performance.now();
      const server = await stage.start([]);
      await fetch(`http://127.0.0.1:${server.port}/api/v1/namespaces/default`);
      const measured = performance.now() - at;
      await server.stop();
      rounds.push({ floor: below, subject: measured });
    }
    return { unit: 'ms', rounds };
  },
};
