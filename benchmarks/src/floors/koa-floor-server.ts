import type { AddressInfo } from 'node:net';
import Koa from 'koa';

/** The start-up floor: a Koa server that answers one text. */
const app = new Koa();
app.use((ctx) => {
  ctx.body = 'ok';
});
const server = app.listen(0, '127.0.0.1', () =>
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`),
);
process.once('SIGTERM', () => process.exit(0));
