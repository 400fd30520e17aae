// Follows a micro-batch through the stages, and widens the picture.
const picture = document.querySelector('#picture svg');
const said = document.getElementById('said');
const idle = said.textContent;
const passes = [...picture.querySelectorAll('g')].filter((g) => g.querySelector(':scope > title'));
const titleOf = (g) => g.querySelector('title').textContent;
const microOf = (g) => (titleOf(g).match(/micro-batch (\d+)/) || [])[1];
let held = null;

function show(g) {
  const micro = g && microOf(g);
  for (const each of passes) each.classList.toggle('other', Boolean(g) && microOf(each) !== micro);
  said.textContent = g ? titleOf(g) : idle;
}

for (const g of passes) {
  g.addEventListener('mouseenter', () => { if (!held) show(g); });
  g.addEventListener('mouseleave', () => { if (!held) show(null); });
  g.addEventListener('click', () => { held = held === g ? null : g; show(held); });
}

const whole = picture.getBoundingClientRect().width;
document.getElementById('width').addEventListener('input', (event) => {
  picture.style.width = `${whole * event.target.value / 100}px`;
  picture.style.height = 'auto';
});
