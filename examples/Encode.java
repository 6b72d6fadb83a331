// Compares the vectors of two sentences, in Java, by JNA (Debian: libjna-java):
//
//   PHASOR_MODELS=models java -Djna.library.path=build/release -cp /usr/share/java/jna.jar examples/Encode.java
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.StringArray;
import com.sun.jna.Structure;
import com.sun.jna.ptr.PointerByReference;
import java.util.Locale;
import java.util.Map;

public class Encode {
  @Structure.FieldOrder({"data", "sizes", "count"})
  public static class Texts extends Structure {
    public Pointer data, sizes;
    public long count;
  }

  @Structure.FieldOrder({"data", "type", "numDims", "shape"})
  public static class Array extends Structure {
    public Pointer data;
    public int type, numDims;
    public long[] shape = new long[4];
  }

  public interface Phasor extends Library {
    String phasor_error_message();
    int phasor_model_load(String name, Pointer options, PointerByReference model);
    void phasor_model_free(Pointer model);
    int phasor_encoder_create(Pointer model, Pointer options, PointerByReference encoder);
    void phasor_encoder_free(Pointer encoder);
    int phasor_embed(Pointer encoder, Texts texts, Pointer options, PointerByReference result);
    int phasor_result_array(Pointer result, String name, long text, Array array);
    void phasor_result_free(Pointer result);
  }

  static final Phasor PHASOR =
      Native.load("phasor_c", Phasor.class, Map.of(Library.OPTION_STRING_ENCODING, "UTF-8"));

  static void check(int status) {
    if (status != 0) throw new IllegalStateException(PHASOR.phasor_error_message());
  }

  static float[] embed(Pointer encoder, String text) {
    Texts texts = new Texts();
    texts.data = new StringArray(new String[] {text}, "UTF-8");
    texts.count = 1;
    PointerByReference result = new PointerByReference();
    check(PHASOR.phasor_embed(encoder, texts, null, result));
    try {
      Array vectors = new Array(); // [1, W]
      check(PHASOR.phasor_result_array(result.getValue(), "vectors", -1, vectors));
      return vectors.data.getFloatArray(0, (int) vectors.shape[1]);
    } finally {
      PHASOR.phasor_result_free(result.getValue());
    }
  }

  public static void main(String[] arguments) {
    PointerByReference model = new PointerByReference(), encoder = new PointerByReference();
    check(PHASOR.phasor_model_load("sinusoidal", null, model));
    check(PHASOR.phasor_encoder_create(model.getValue(), null, encoder));
    float[] a = embed(encoder.getValue(), "Tom bit a dog."), b = embed(encoder.getValue(), "A dog bit Tom.");
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < a.length; ++i) {
      ab += (double) a[i] * b[i];
      aa += (double) a[i] * a[i];
      bb += (double) b[i] * b[i];
    }
    System.out.printf(Locale.ROOT, "cosine %.4f%n", ab / Math.sqrt(aa * bb));
    PHASOR.phasor_encoder_free(encoder.getValue());
    PHASOR.phasor_model_free(model.getValue());
  }
}
