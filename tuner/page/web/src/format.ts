// Numbers in the units that people use, as the tools print them.

function digits(value: number, count = 3): string {
  if (value === 0) return "0";
  value = Number(value.toPrecision(count));  // 0.09999 has the digits of 0.1
  const before = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, Math.min(6, count - before)));
}

export function time(us: number | null | undefined, count = 3): string {
  if (us === null || us === undefined || !Number.isFinite(us)) return "–";
  if (Math.abs(us) < 1e-4) return "0";  // sums of times leave rests of rounding
  if (us < 1) return `${digits(us * 1e3, count)} ns`;
  if (us < 1e3) return `${digits(us, count)} µs`;
  if (us < 1e6) return `${digits(us / 1e3, count)} ms`;
  return `${digits(us / 1e6, count)} s`;
}

export function seconds(s: number): string {
  if (s >= 5940) return `${digits(s / 3600)} h`;
  if (s >= 99) return `${digits(s / 60)} min`;
  return s >= 1 ? `${digits(s)} s` : time(s * 1e6);
}

/** Digits that tell times apart that lie between two others. */
export function digits_between(low: number, high: number): number {
  return high > low && low > 0 ? Math.min(7, Math.max(3, 2 + Math.ceil(Math.log10(high / (high - low))))) : 3;
}

/** A rate of floating point operations, from FLOPs and µs. */
export function flop_rate(flops: number, us: number): string {
  return gflops(flops / us / 1e3);
}

export function gflops(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value >= 1e3 ? `${digits(value / 1e3)} TFLOPS` : `${digits(value)} GFLOPS`;
}

export function gbps(value: number): string {
  return value >= 1e4 ? `${digits(value / 1e3)} TB/s` : `${digits(value)} GB/s`;
}

/** The rate of a result: GB/s where memory limits it on every device, as the tools print it. */
export function rate(of: { flops: number | null; bytes: number | null }, us: number | null): string {
  if (!us || us <= 0) return "–";
  const flops = of.flops ?? 0;
  const bytes = of.bytes ?? 0;
  if (bytes > 0 && flops < 8 * bytes) return gbps(bytes / us / 1e3);
  return flops > 0 ? flop_rate(flops, us) : "–";
}

export function share(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const percent = value * 100;
  return `${percent >= 10 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

export function ratio(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)}×`;
}

/** A label of an axis: "1.00 ms" as "1 ms". */
export function tick(text: string): string {
  return text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

/** A change as a signed percentage: 1.12 is "+12 %". */
export function change(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const percent = (value - 1) * 100;
  const text = Math.abs(percent) >= 10 ? percent.toFixed(0) : percent.toFixed(1);
  return `${percent >= 0 ? "+" : "−"}${text.replace("-", "")} %`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  if (value < 1 << 20) return `${digits(value / 1024)} KiB`;
  return `${digits(value / (1 << 20))} MiB`;
}

export function count(value: number, noun: string, several = `${noun}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? noun : several}`;
}

/** "2026-11-20T12:00:00Z" as "2026-11-20 12:00". */
export function date(utc: string): string {
  return utc.slice(0, 16).replace("T", " ");
}
