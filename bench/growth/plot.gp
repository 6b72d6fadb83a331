# Draws the results of run, for light and dark pages: nothing is black, white or filled.
set terminal svg size 720,420 dynamic font "sans-serif,13" name "growth"
set border 3 linecolor rgb "#808080"
set tics nomirror textcolor rgb "#808080"
set grid ytics linecolor rgb "#808080" linetype 1 linewidth 0.3
set key top right textcolor rgb "#808080" samplen 2
set xlabel textcolor rgb "#808080"
set ylabel "tokens a second" textcolor rgb "#808080"
set logscale x 2
set logscale y 10
set yrange [1000:50000]
set format y "%.0f"

float32 = "#3b82f6"
int8 = "#e07b39"
file(name, precision) = sprintf("%s/%s-%s.txt", work, name, precision)

# For an encoder C wide with 4C in the MLP, a token costs 24·C² operations in the linear maps and
# 4·T·C in attention, in each layer.
C = 384.0
slope(T) = 24 * C / (24 * C + 4 * T)

set output out."/growth-length.svg"
set xlabel "tokens of a sentence (4096 in a batch)"
set xrange [13:5000]
stats file("length", "f32") using 3 nooutput
best = STATS_max
plot file("length", "int8") using 1:3 with linespoints linewidth 2 linecolor rgb int8 pointtype 7 title "int8", \
     file("length", "f32") using 1:3 with linespoints linewidth 2 linecolor rgb float32 pointtype 7 title "float32", \
     best * slope(x) with lines linewidth 1.5 dashtype 2 linecolor rgb "#808080" title "float32 if only operations counted"

set output out."/growth-batch.svg"
set xlabel "sentences of a batch (32 tokens each)"
set xrange [0.8:330]
plot file("batch", "int8") using 2:3 with linespoints linewidth 2 linecolor rgb int8 pointtype 7 title "int8", \
     file("batch", "f32") using 2:3 with linespoints linewidth 2 linecolor rgb float32 pointtype 7 title "float32"
